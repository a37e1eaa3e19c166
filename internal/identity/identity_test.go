package identity

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

const (
	aliceToken = "alice-token-0123456789"
	bobToken   = "bob-token-9876543210xyz"
)

func twoTokens(t *testing.T) *Tokens {
	t.Helper()
	tokens, err := NewTokens([]Credential{{"alice", aliceToken}, {"bob", bobToken}})
	if err != nil {
		t.Fatal(err)
	}
	return tokens
}

func TestR10_1_AuthenticateNamesTheOwner(t *testing.T) {
	tokens := twoTokens(t)
	for bearer, want := range map[string]string{
		aliceToken: "alice", bobToken: "bob",
		"": "", aliceToken + "x": "", aliceToken[:len(aliceToken)-1]: "", strings.ToUpper(aliceToken): "",
		strings.Repeat("a", maxTokenLength+1): "",
	} {
		p, ok := tokens.Authenticate(context.Background(), bearer)
		if p.ID != want || ok != (want != "") {
			t.Errorf("Authenticate(%.30q) = %q, %v; want %q", bearer, p.ID, ok, want)
		}
	}
	if _, ok := (&Tokens{}).Authenticate(context.Background(), ""); ok {
		t.Error("the zero Tokens let the empty token in")
	}
}

func TestNewTokensRefuses(t *testing.T) {
	for name, c := range map[string][]Credential{
		"short":           {{"alice", "0123456789abcde"}},
		"empty":           {{"alice", ""}},
		"blank inside":    {{"alice", "0123456789 abcdefgh"}},
		"newline":         {{"alice", "0123456789abcdefgh\n"}},
		"no principal":    {{"", aliceToken}},
		"control in name": {{"al\x1bice", aliceToken}},
		"shared":          {{"alice", aliceToken}, {"bob", aliceToken}},
	} {
		_, err := NewTokens(c)
		if err == nil {
			t.Errorf("%s: accepted", name)
			continue
		}
		if tok := string(c[0].Token); tok != "" && strings.Contains(err.Error(), tok) {
			t.Errorf("%s: the error shows the token: %v", name, err)
		}
	}
}

// R6.9: however a token is printed, it does not appear.
func TestR6_9_TokensAreNeverPrinted(t *testing.T) {
	c := Credential{"alice", aliceToken}
	var logs bytes.Buffer
	log := slog.New(slog.NewJSONHandler(&logs, nil))
	log.Info("x", "token", c.Token, "credential", c, "tokens", twoTokens(t))
	slog.New(slog.NewTextHandler(&logs, nil)).Info("x", "token", c.Token, "credential", c)
	js, err := json.Marshal(c)
	if err != nil {
		t.Fatal(err)
	}
	out := logs.String() + string(js) + fmt.Sprintf("%v %+v %#v %s %q", c, c, c, c.Token, c.Token)
	if strings.Contains(out, aliceToken) {
		t.Errorf("token is shown: %s", out)
	}
}

func request(remote, authorization, query string) *http.Request {
	r := httptest.NewRequest("POST", "http://127.0.0.1/v1/mcp?"+query, nil)
	r.RemoteAddr = remote
	if authorization != "" {
		r.Header.Set("Authorization", authorization)
	}
	return r
}

func TestF47_GuardAnswers(t *testing.T) {
	for _, c := range []struct {
		name, authorization, query string
		status                     int
	}{
		{"good", "Bearer " + aliceToken, "", 0},
		{"scheme in lower case", "bearer " + aliceToken, "", 0},
		{"missing", "", "", 401},
		{"basic", "Basic " + aliceToken, "", 401},
		{"empty", "Bearer ", "", 401},
		{"bare", aliceToken, "", 401},
		{"wrong", "Bearer nonsense", "", 401},
		{"in the query", "", "access_token=" + aliceToken, 400},
		{"in the query and the header", "Bearer " + aliceToken, "a=b&access%5Ftoken=x", 400},
	} {
		t.Run(c.name, func(t *testing.T) {
			g := NewGuard(twoTokens(t).Authenticate, nil)
			p, refusal := g.Check(request("192.0.2.1:1", c.authorization, c.query))
			if c.status == 0 {
				if refusal != nil || p.ID != "alice" {
					t.Fatalf("got %v, %+v", p, refusal)
				}
				return
			}
			if refusal == nil || refusal.Status != c.status || p.ID != "" {
				t.Fatalf("got %v, %+v; want status %d", p, refusal, c.status)
			}
			w := httptest.NewRecorder()
			refusal.Write(w)
			if w.Code != c.status || !json.Valid(w.Body.Bytes()) || strings.Contains(w.Body.String(), aliceToken) {
				t.Errorf("answer %d %s", w.Code, w.Body)
			}
			if got := w.Header().Get("WWW-Authenticate"); (c.status == 401) != strings.HasPrefix(got, "Bearer") {
				t.Errorf("WWW-Authenticate = %q", got)
			}
		})
	}
	g := NewGuard(twoTokens(t).Authenticate, nil)
	r := request("192.0.2.1:1", "Bearer "+aliceToken, "")
	r.Header.Add("Authorization", "Bearer "+bobToken)
	if _, refusal := g.Check(r); refusal == nil {
		t.Error("two Authorization headers were accepted")
	}
}

// F-47: guessing is slowed by address, a good token from the same address still passes, other addresses are not affected,
// and the window ends.
func TestF47_Throttle(t *testing.T) {
	now := time.Unix(1000, 0)
	throttle := NewThrottle(ThrottleOptions{Limit: 3, Window: time.Minute, Now: func() time.Time { return now }})
	g := NewGuard(twoTokens(t).Authenticate, throttle)
	status := func(remote, bearer string) int {
		_, refusal := g.Check(request(remote, "Bearer "+bearer, ""))
		if refusal == nil {
			return 200
		}
		return refusal.Status
	}
	for i := range 3 {
		if got := status("192.0.2.1:1", "wrong"); got != 401 {
			t.Fatalf("guess %d: %d", i, got)
		}
	}
	if got := status("192.0.2.1:2", "wrong"); got != 429 {
		t.Errorf("guess too many from another port: %d, want 429", got)
	}
	if got := status("192.0.2.1:3", aliceToken); got != 200 {
		t.Errorf("good token from a guesser's address: %d, want 200", got)
	}
	if got := status("192.0.2.2:1", "wrong"); got != 401 {
		t.Errorf("another address: %d, want 401", got)
	}
	now = now.Add(time.Minute)
	if got := status("192.0.2.1:1", "wrong"); got != 401 {
		t.Errorf("after the window: %d, want 401", got)
	}
}

// A throttle never remembers more sources than its bound plus the shared one, and never limits before Limit failures in
// a window were seen in all.
func TestThrottleIsBounded(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		now := time.Unix(0, 0)
		th := NewThrottle(ThrottleOptions{Limit: 5, Sources: 4, Window: time.Second, Now: func() time.Time { return now }})
		total := 0
		for range rapid.IntRange(1, 200).Draw(t, "steps") {
			if rapid.IntRange(0, 9).Draw(t, "advance") == 0 {
				now = now.Add(time.Second)
				total = 0
			}
			addr := fmt.Sprintf("[2001:db8:%x::1]:1", rapid.IntRange(0, 30).Draw(t, "source"))
			total++
			if after := th.Failed(addr); after > 0 && total <= 5 {
				t.Fatalf("limited after %d failures", total)
			} else if after < 0 || after > time.Second {
				t.Fatalf("retry after %v", after)
			}
			if len(th.counts) > 5 {
				t.Fatalf("%d sources", len(th.counts))
			}
		}
	})
}

// Whatever the header says, only a whole token lets its owner in, and nothing else is a principal.
func FuzzGuard(f *testing.F) {
	tokens, err := NewTokens([]Credential{{"alice", aliceToken}})
	if err != nil {
		f.Fatal(err)
	}
	f.Add("Bearer "+aliceToken, "")
	f.Add("bearer  "+aliceToken+" ", "a=b")
	f.Add("Bearer "+aliceToken+","+aliceToken, "access_token=x")
	f.Fuzz(func(t *testing.T, authorization, query string) {
		r := &http.Request{Header: http.Header{"Authorization": {authorization}}, URL: &url.URL{RawQuery: query}, RemoteAddr: "192.0.2.1:1"}
		p, refusal := NewGuard(tokens.Authenticate, nil).Check(r)
		if refusal != nil {
			if p.ID != "" || refusal.Status < 400 {
				t.Fatalf("%+v with %+v", p, refusal)
			}
			return
		}
		if _, token, _ := strings.Cut(authorization, " "); p.ID != "alice" || strings.Trim(token, " ") != aliceToken {
			t.Fatalf("%q let %q in", authorization, p.ID)
		}
	})
}
