package firewall

// Rules say what findings do for one tool (R8.4). The zero value has the defaults: every code does what [Codes] lists.
//
// The most exact word counts: Codes, then Sensitivities, then Classes, then the default. A class alone cannot accept what is
// of a protected sensitivity ([Sensitivity.Protected]): that takes a rule for the sensitivity or for the code.
type Rules struct {
	Codes         map[Code]Action
	Sensitivities map[Sensitivity]Action
	Classes       map[Class]Action

	Limits  Limits
	Content []string // the admitted content kinds; nil: every kind (R3.7)
}

// Limits are the bounds of one tool. A zero field has its default.
type Limits struct {
	Bytes  int // of the whole document; 8 MiB
	Blocks int // of content; 1,000
	Text   int // of one string, in bytes; 4 MiB
	Depth  int // of nesting; 128
}

func (l Limits) orDefault() Limits {
	for _, f := range []struct {
		v *int
		d int
	}{{&l.Bytes, 8 << 20}, {&l.Blocks, 1000}, {&l.Text, 4 << 20}, {&l.Depth, 128}} {
		if *f.v <= 0 {
			*f.v = f.d
		}
	}
	return l
}

// action is what a finding of code c does.
func (r *Rules) action(c Code, outgoing bool) Action {
	if a, ok := r.Codes[c]; ok {
		return a
	}
	info := c.Info()
	if a, ok := r.Sensitivities[info.Sensitivity]; ok && info.Sensitivity != SensitivityNone {
		return a
	}
	if a, ok := r.Classes[info.Class]; ok && (a != Accept || !info.Sensitivity.Protected()) {
		return a
	}
	if outgoing {
		return info.Argument
	}
	return info.Result
}
