package model

// A blindspot is one that docs/guarantees.md names: it excuses a state that breaks an
// invariant. Each must be met, or it is named for nothing.
type blindspot struct {
	Name, Says string   // Says are its words there
	Of         []string // the IDs of the invariants
	Pair       bool     // of two callers, not of one

	holds func(cfg *Config, s *State, early, late int) bool
}

var blindspots = []blindspot{
	{
		"committed-before-snapshot", "A commit by a holder that had lost its lock and died before it could report, unless it came after the next holder's snapshot.", []string{"I5"}, true,
		func(_ *Config, s *State, early, _ int) bool {
			c := &s.Callers[early]
			return c.PC == dead && c.Took > 0
		},
	},
	{ // the kill is what rolls it back
		"rolled-back-by-kill", "A process that is killed between the refusal of its write, or its rollback, and the commit of the event", []string{"I5"}, true,
		func(_ *Config, s *State, early, _ int) bool {
			c := &s.Callers[early]
			return c.PC == dead && c.Took == 0 && c.DiedAt < reporting
		},
	},
	{
		"killed-before-event", "A process that is killed between the refusal of its write, or its rollback, and the commit of the event", []string{"I5"}, true,
		func(_ *Config, s *State, early, _ int) bool {
			c := &s.Callers[early]
			return c.PC == dead && c.DiedAt == reporting
		},
	},
	{
		"killed-after-hand-over", "with a lock that it lost earlier, when callers before had it who handed it on in memory", []string{"I5"}, true,
		func(_ *Config, s *State, early, _ int) bool {
			return s.Callers[early].PC == returned && s.any(s.Callers[early].Grant, func(c *Caller) bool { return c.PC == dead })
		},
	},
	{
		"release-unheard", "A lock that was lost after its holder's commit", []string{"I5"}, true,
		func(_ *Config, s *State, early, _ int) bool {
			return s.any(s.Callers[early].Grant, func(c *Caller) bool { return c.Res == done && c.FreeUnheard })
		},
	},
	{
		"failed-release-unheard", "before an operation that failed for another reason", []string{"I5"}, true,
		func(_ *Config, s *State, early, _ int) bool {
			return s.any(s.Callers[early].Grant, func(c *Caller) bool { return c.Res == failed && c.FreeUnheard })
		},
	},
	{
		"unknown-unheard", "before a commit of unknown outcome, when the question who has it did", []string{"I5"}, true,
		func(_ *Config, s *State, early, _ int) bool {
			return s.any(s.Callers[early].Grant, func(c *Caller) bool { return c.Res == unsure && c.AskUnheard })
		},
	},
	{
		"repeat-unheard", "A repeat whose holder had lost its lock, when neither the question who has it nor the release reached the lock's node.", []string{"I5"}, true,
		func(_ *Config, s *State, early, _ int) bool {
			return s.any(s.Callers[early].Grant, func(c *Caller) bool {
				return (c.Res == duplicate || c.Res == stale) && c.AskUnheard && c.FreeUnheard
			})
		},
	},
	{
		"deadlock-before-look", "A row whose writer never asked for the lock, won a deadlock against the insert of the lock's holder, and committed before that one could look", []string{"I5"}, false,
		func(_ *Config, s *State, _, late int) bool {
			c := &s.Callers[late]
			return c.Missed && !c.Later && !c.Fresh
		},
	},
	{
		"isolation-changed", "Overlaps on a session of MySQL or MariaDB whose isolation level was changed past gorm", []string{"I5", "I11"}, false,
		func(cfg *Config, _ *State, _, _ int) bool { return cfg.Changed },
	},
	{
		"protected-after-raw-sql", "an overlap on a row that became protected only after the operation may have written it", []string{"I5", "I11"}, false,
		func(cfg *Config, _ *State, _, _ int) bool { return cfg.RawSQL },
	},
	{
		"row-deleted", "a write whose COMMIT was executed and not answered, and whose row somebody without the lock deleted", []string{"I3"}, false,
		func(cfg *Config, s *State, i, _ int) bool {
			return !cfg.Postgres && s.Row.Deleted && s.Callers[i].Unanswered && s.Callers[i].Res.clean()
		},
	},
	{
		"replayed-before-durable", "A repeat of what a crash undoes.", []string{"I15"}, false,
		func(cfg *Config, s *State, i, _ int) bool {
			return cfg.Budget.Crash > 0 && s.Left.Crash == 0 && s.Callers[i].Res == replayed
		},
	},
	{
		"several-locks-lost", "An operation with several keys that loses several locks reports one of them.", []string{"I5"}, true,
		func(_ *Config, s *State, early, _ int) bool {
			return early < processes && s.Several.Calls[early].alarm() // about another key
		},
	},
	{
		"row-replaced", "A row that was deleted and inserted again with the same primary key and version.", []string{"I2", "I11"}, false,
		func(_ *Config, s *State, _, _ int) bool { return s.Row.Replaced },
	},
}
