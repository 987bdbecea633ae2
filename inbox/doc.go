// Package inbox lets a message take effect once, however often its broker delivers it.
//
//	box, err := inbox.New(g, inbox.Config{Consumer: "billing"})
//	if err != nil {
//		return err
//	}
//	decision, err := box.Handle(ctx, inbox.Message{ID: m.ID, Body: m.Body}, book, guard.Also("account:7", &Account{ID: 7}))
//
// The id of a message that has taken effect is stored in the transaction of its effect: see
// package once, whose tables must be there. Tell the broker what Handle has decided, after
// Handle has returned and never before. Package amqpinbox does so for RabbitMQ.
//
// Keep requests (once.PurgerConfig.Keep) for longer than the broker may deliver a message
// again, dead letters that are sent back included.
package inbox
