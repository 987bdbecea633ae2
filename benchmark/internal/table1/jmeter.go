package table1

import (
	"context"

	"github.com/belaygo/belay/benchmark/internal/load"
)

// newJMeter makes JMeter the loader of the experiment.
func newJMeter(ctx context.Context, e *experiment) (loader, error) {
	return load.NewJMeter(ctx, load.JMeterConfig{
		Dir: e.stage.Dir(), Root: e.stage.Root(), Answered: e.stage.Answered,
		Ready: func() { e.ready() },
	})
}
