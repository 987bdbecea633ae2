package payments_test

import (
	"context"

	"gorm.io/gorm"

	"github.com/belaygo/belay/guard"
)

// payByHand does without guard.Call: it reserves in an operation that is served once, charges, and
// settles in a transaction. A repeat of what has died in between finds that all is done.
func (s *service) payByHand(ctx context.Context, p Payment) (string, error) {
	c := s.call()
	a, err := guard.Once(ctx, s.guard, request(p.No, p.Cents), func(ctx context.Context, tx *gorm.DB) (string, error) {
		return paid, c.Reserve(ctx, tx, p)
	})
	if err != nil || a.Replayed {
		return a.Value, err
	}
	receipt, err := c.Do(ctx, request(p.No, p.Cents).Downstream("pay"), p)
	if err != nil {
		return "", err
	}
	err = s.guard.Do(ctx, "payment:"+p.No, func(ctx context.Context, tx *gorm.DB) error {
		_, err := c.Settle(ctx, tx, p, guard.Outcome[string]{Value: receipt})
		return err
	})
	return paid, err
}
