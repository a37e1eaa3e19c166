package config

import (
	"time"

	"github.com/ostiary/ostiary/internal/policy"
)

// budgetKeys are those of both tables of budgets, with the defaults that policy has.
func budgetKeys() []Key {
	return []Key{
		{Name: "calls", Type: typeInteger, Default: `60000`, Min: 0, Max: 1_000_000, Unit: "calls", Meaning: "At most so many in `seconds`; 0: no bound.", Needs: "A-30"},
		{Name: "seconds", Type: typeSeconds, Default: `600`, Min: 1, Max: 604_800, Unit: "seconds", Meaning: "The period of `calls`. It begins with its first call.", Needs: "A-30"},
		{Name: "identical", Type: typeInteger, Default: `100`, Min: 0, Max: 1_000_000, Unit: "calls", Meaning: "At most so often the same tool with the same arguments in `identical_seconds`; 0: no bound.", Needs: "A-30"},
		{Name: "identical_seconds", Type: typeSeconds, Default: `60`, Min: 1, Max: 604_800, Unit: "seconds", Meaning: "The period of `identical`.", Needs: "A-30"},
	}
}

// budget reads both tables.
func (l *loader) budget(t *node) {
	parts := map[string]*node{}
	for name, part := range l.named(t, "budget") {
		if name != "principal" && name != "session" {
			l.fault(part.line, joinKey("budget", name), didYouMean(name, []string{"principal", "session"}), "unknown key: expected budget.principal or budget.session")
			continue
		}
		parts[name] = part
	}
	l.config.Budget = Budget{
		Principal: l.section(budgetPrincipalSection, parts["principal"], "budget", "principal").callLimits(),
		Session:   l.section(budgetSessionSection, parts["session"], "budget", "session").callLimits(),
	}
}

// callLimits reads one table. A number that bounds nothing takes its period along.
func (s *section) callLimits() policy.Limits {
	s.unknown()
	limits := policy.Limits{
		Calls: int(s.integer("calls")), Per: s.seconds("seconds"),
		Identical: int(s.integer("identical")), IdenticalPer: s.seconds("identical_seconds"),
	}
	if limits.Calls == 0 {
		limits.Per = time.Duration(0)
	}
	if limits.Identical == 0 {
		limits.IdenticalPer = time.Duration(0)
	}
	return limits
}
