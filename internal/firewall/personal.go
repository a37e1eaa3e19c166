package firewall

import "bytes"

// The codes of personal data.
const (
	CodeEmail     Code = "email"
	CodePhone     Code = "phone"
	CodeCard      Code = "payment_card"
	CodeIBAN      Code = "iban"
	CodeChineseID Code = "chinese_id"
	CodeSSN       Code = "us_ssn"
)

// personal inspects v for data about a person. It knows no names and no addresses of houses.
func (s *scan) personal(v *view, shape *shape) {
	if shape.at {
		s.emails(v)
	}
	if shape.digits < 9 {
		return
	}
	t := v.text
	var number [40]byte
	for i := 0; i < len(t); {
		if c := t[i]; byteClass[c]&cDigit == 0 {
			if c >= 'A' && c <= 'Z' && (i == 0 || !wordByte(t[i-1])) {
				if n := iban(t[i:]); n > 0 {
					s.find(v, CodeIBAN, i, i+n)
					i += n
					continue
				}
			}
			i++
			continue
		}
		end, digits := numberAt(t, i, number[:0])
		before := byte(0)
		if i > 0 {
			before = t[i-1]
		}
		if !wordByte(before) && before != '.' && (before != '-' || i < 2 || !wordByte(t[i-2])) && (end == len(t) || !wordByte(t[end]) || t[end] == 'X' || t[end] == 'x') {
			if code, n := numberCode(t, i, end, digits); code != "" {
				from := i
				if code == CodePhone && before == '+' {
					from--
				}
				s.find(v, code, from, n)
			}
		}
		i = end
	}
}

// numberAt is where the group of digits at i ends, with single blanks and hyphens inside, and its digits appended to digits.
func numberAt(t []byte, i int, digits []byte) (int, []byte) {
	for i < len(t) && len(digits) < cap(digits) {
		switch c := t[i]; {
		case byteClass[c]&cDigit != 0:
			digits = append(digits, c)
			i++
		case (c == ' ' || c == '-') && i+1 < len(t) && byteClass[t[i+1]]&cDigit != 0:
			i++
		default:
			return i, digits
		}
	}
	return i, digits
}

// numberCode is what the number at [from, to) is, and where that ends.
func numberCode(t []byte, from, to int, digits []byte) (Code, int) {
	raw := t[from:to]
	separated := len(raw) > len(digits)
	switch n := len(digits); {
	case n == 17 && !separated && to < len(t) && (t[to] == 'X' || t[to] == 'x') && chineseID(append(digits[:17:17], 'X')):
		return CodeChineseID, to + 1
	case to < len(t) && wordByte(t[to]):
		return "", 0
	case n == 18 && !separated && chineseID(digits):
		return CodeChineseID, to
	case n >= 13 && n <= 19 && card(digits) && (separated && grouped(raw) || !separated && (n <= 16 || named(t, from, "card", "visa", "卡", "pan", "unionpay", "银联"))):
		return CodeCard, to
	case n == 9 && len(raw) == 11 && (raw[3] == '-' || raw[3] == ' ') && raw[6] == raw[3] && ssn(digits) && named(t, from, "ssn", "social security"):
		return CodeSSN, to
	case n == 11 && (!separated || len(raw) == 13) && digits[0] == '1' && digits[1] >= '3' && named(t, from, "phone", "mobile", "tel", "手机", "电话", "联系", "cell", "call"):
		return CodePhone, to
	case n >= 10 && n <= 14 && from > 0 && t[from-1] == '+' && digits[0] != '0':
		return CodePhone, to
	}
	return "", 0
}

// grouped says that raw is written as card numbers are, in groups of four or as Amex does.
func grouped(raw []byte) bool {
	group, groups := 0, 0
	for i, c := range raw {
		if c == ' ' || c == '-' {
			if group < 4 || group > 6 {
				return false
			}
			group = 0
			groups++
			continue
		}
		group++
		if i == len(raw)-1 {
			groups++
		}
	}
	return groups >= 3 && groups <= 5
}

// named says that one of words stands shortly before i.
func named(t []byte, i int, words ...string) bool {
	before := bytes.ToLower(t[max(0, i-48):i])
	for _, w := range words {
		if bytes.Contains(before, []byte(w)) {
			return true
		}
	}
	return false
}

// card says that d is the number of a payment card: an issuer's range, a length that it uses, and the check digit.
func card(d []byte) bool {
	n := len(d)
	num := func(k int) int {
		v := 0
		for _, c := range d[:k] {
			v = v*10 + int(c-'0')
		}
		return v
	}
	ok := false
	switch p4 := num(4); {
	case d[0] == '4':
		ok = n == 16 || n == 13 || n == 19
	case p4 >= 5100 && p4 <= 5599, p4 >= 2221 && p4 <= 2720:
		ok = n == 16
	case p4/100 == 34, p4/100 == 37:
		ok = n == 15
	case p4 == 6011, p4/100 == 65, p4 >= 6440 && p4 <= 6499:
		ok = n == 16 || n == 19
	case p4/100 == 62:
		ok = n >= 16 && n <= 19
	case p4 >= 3528 && p4 <= 3589:
		ok = n == 16
	case p4/100 == 36, p4/100 == 38, p4 >= 3000 && p4 <= 3059:
		ok = n == 14
	}
	return ok && luhn(d) && bytes.Count(d, d[n-1:]) < n
}

func luhn(d []byte) bool {
	sum := 0
	for i := range d {
		v := int(d[len(d)-1-i] - '0')
		if i%2 == 1 {
			if v *= 2; v > 9 {
				v -= 9
			}
		}
		sum += v
	}
	return sum%10 == 0
}

// chineseID says that d is a resident identity number: a region, a date of birth, and the check character of GB 11643.
func chineseID(d []byte) bool {
	if d[0] < '1' || d[0] > '8' {
		return false
	}
	year, month, day := int(d[6]-'0')*10+int(d[7]-'0'), int(d[10]-'0')*10+int(d[11]-'0'), int(d[12]-'0')*10+int(d[13]-'0')
	if year < 19 || year > 20 || month < 1 || month > 12 || day < 1 || day > 31 {
		return false
	}
	sum := 0
	for i, w := range [...]int{7, 9, 10, 5, 8, 4, 2, 1, 6, 3, 7, 9, 10, 5, 8, 4, 2} {
		sum += w * int(d[i]-'0')
	}
	return "10X98765432"[sum%11] == d[17]
}

func ssn(d []byte) bool {
	return string(d[:3]) != "000" && string(d[:3]) != "666" && d[0] != '9' && string(d[3:5]) != "00" && string(d[5:]) != "0000"
}

// ibanLength is the length of an IBAN by country.
var ibanLength = map[string]int{
	"AD": 24, "AE": 23, "AL": 28, "AT": 20, "AZ": 28, "BA": 20, "BE": 16, "BG": 22, "BH": 22, "BR": 29, "CH": 21, "CR": 22, "CY": 28, "CZ": 24, "DE": 22,
	"DK": 18, "DO": 28, "EE": 20, "ES": 24, "FI": 18, "FO": 18, "FR": 27, "GB": 22, "GE": 22, "GI": 23, "GL": 18, "GR": 27, "GT": 28, "HR": 21, "HU": 28,
	"IE": 22, "IL": 23, "IS": 26, "IT": 27, "JO": 30, "KW": 30, "KZ": 20, "LB": 28, "LI": 21, "LT": 20, "LU": 20, "LV": 21, "MC": 27, "MD": 24, "ME": 22,
	"MK": 19, "MT": 31, "NL": 18, "NO": 15, "PK": 24, "PL": 28, "PS": 29, "PT": 25, "QA": 29, "RO": 24, "RS": 22, "SA": 24, "SE": 24, "SI": 19, "SK": 24,
	"SM": 27, "TN": 24, "TR": 26, "UA": 29, "VG": 24, "XK": 20,
}

// iban is the length of the account number that t begins with, 0 if it does not.
func iban(t []byte) int {
	if len(t) < 15 || t[1] < 'A' || t[1] > 'Z' || byteClass[t[2]]&cDigit == 0 || byteClass[t[3]]&cDigit == 0 {
		return 0
	}
	want, ok := ibanLength[string(t[:2])]
	if !ok {
		return 0
	}
	var d []byte
	i := 0
	for ; i < len(t) && len(d) < want; i++ {
		switch c := t[i]; {
		case c >= '0' && c <= '9', c >= 'A' && c <= 'Z':
			d = append(d, c)
		case c == ' ' && i > 0 && t[i-1] != ' ':
		default:
			return 0
		}
	}
	if len(d) != want || i < len(t) && wordByte(t[i]) {
		return 0
	}
	rest := 0
	for _, c := range append(append([]byte(nil), d[4:]...), d[:4]...) {
		if c >= 'A' {
			rest = (rest*100 + int(c-'A') + 10) % 97
		} else {
			rest = (rest*10 + int(c-'0')) % 97
		}
	}
	if rest != 1 {
		return 0
	}
	return i
}

// emails finds addresses around each @.
func (s *scan) emails(v *view) {
	t := v.text
	for i := 0; i < len(t); i++ {
		n := bytes.IndexByte(t[i:], '@')
		if n < 0 {
			return
		}
		i += n
		from, to := i, i+1
		for from > 0 && i-from < 64 && (wordByte(t[from-1]) || t[from-1] == '.' || t[from-1] == '+' || t[from-1] == '-') {
			from--
		}
		dot := -1
		for to < len(t) && to-i < 128 && (wordByte(t[to]) && t[to] != '_' || t[to] == '.' || t[to] == '-') {
			if t[to] == '.' {
				dot = to
			}
			to++
		}
		if dot == to-1 && dot > 0 {
			to--
			dot = bytes.LastIndexByte(t[i:to], '.') + i
		}
		if from < i && dot > i+1 && to-dot > 2 && to-dot < 12 && byteClass[t[to-1]]&cDigit == 0 {
			s.find(v, CodeEmail, from, to)
		}
	}
}
