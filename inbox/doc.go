// Package inbox lets a message take effect once, however often its broker delivers it.
//
//	box, err := inbox.New(b.Guard, inbox.Config{Consumer: "billing"})
//	if err != nil {
//		return err
//	}
//	decision, err := box.Handle(ctx, inbox.Message{ID: m.ID, Body: m.Body}, book, guard.Also("account:7", &Account{ID: 7}))
//
// The id of a message that has taken effect is stored in the transaction of its effect: see
// package once, whose tables must exist. belay.Open creates them if its Config has Once. Answer the
// broker with Handle's decision, never before Handle has returned. Package amqpinbox does so for
// RabbitMQ.
//
// Keep requests (once.PurgerConfig.Keep) for longer than the broker may deliver a message
// again, including dead letters that are sent back.
package inbox
