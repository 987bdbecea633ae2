// Package message is the table belay_message, and the tables of the relays that empty it.
//
//	err := message.Insert(ctx, conn, dialect, []message.Row{
//		{MessageID: "0199a1b2-...", Key: "item:7", Topic: "sale.made", Body: body},
//	})
//
// A message is a row that an operation inserts in its own transaction, after all its other
// writes, under a lock on the message's key. So the ids of one key's messages are in the order
// of their commits. Package relay takes the rows out in that order.
//
// A key's messages are in one of 32 lanes. One relay at a time has a lane.
//
// A message that is in the table already is skipped: an earlier COMMIT of the same operation
// has taken effect, though its caller was not told. Only the column message_id decides that, so
// its values are plain: MySQL ignores blanks at the end of a text.
package message
