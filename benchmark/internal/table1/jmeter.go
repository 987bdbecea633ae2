package table1

import "github.com/belaygo/belay/benchmark/internal/load"

// newJMeter makes JMeter the loader of the experiment.
func newJMeter(e *experiment) loader {
	return load.NewJMeter(load.JMeterConfig{
		Dir: e.stage.Dir(), Root: e.stage.Root(), Answered: e.stage.Answered,
		Ready: func() { e.ready() },
	})
}
