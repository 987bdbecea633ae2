package guard

import (
	"context"

	"github.com/belaygo/belay/internal/dbtx"
)

// Send returns a Change that sends m with the commit. All sends its messages last, after the
// changes before and behind them: so they are in the order in which the database accepted those
// changes, also if the lock is lost.
//
// A message counts as a write, but guards nothing: add the rows that make a repeat harmless. If the
// operation serves a request (For, Once), the message's id comes from the request, its topic, and
// its Name or its place: a request that runs again, as after a lost commit, sends the same id. A message
// that is still in the table is not stored again. Without a request the id is random.
//
// The id of a request has no service in it. If two services serve requests of one name and id, as two inboxes
// with one Consumer that get the same message, and both send to one consumer under one topic, that takes the
// second message for the first: give them Names, or the inboxes Consumers, that differ.
//
// Run sends at once, and belongs behind the writes of its operation. A message that is sent inside
// a savepoint is rolled back with it. A repeat that gets a stored answer sends nothing, and
// neither does a refusal: see Refuse.
//
// The table of messages must be there: see relay.Migrate. An error of the database rolls the
// operation back. What else is wrong with a message is ErrMessage.
func Send(m Message) Change {
	m = m.clone()
	return SendFunc(func() (Message, error) { return m, nil })
}

// SendFunc is Send of a message that is made after the changes of its All, so that it can have what
// they have made of the rows. With Combine the database has not stored the rows by then. An error
// of it ends the operation. It may be called several times, and must alter nothing.
func SendFunc(f func() (Message, error)) Change {
	return Change{sends: sending{makes: []func() (Message, error){f}}}
}

// SendSQL sends messages inside an operation that writes SQL, as Send(m).Run does with gorm. ctx is
// that of the operation. Outside of one the error matches dbguard.ErrOutside.
func SendSQL(ctx context.Context, messages ...Message) error {
	t, err := dbtx.Operation(ctx)
	if err != nil {
		return err
	}
	return sendingOf(messages).run(ctx, t, nil)
}
