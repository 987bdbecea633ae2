// Package relay takes messages out of the business database, in order, after their commit.
//
//	if err := relay.Migrate(ctx, db); err != nil {
//		return err
//	}
//	r, err := relay.New(db, relay.Config{Routes: []relay.Route{
//		{Topic: "mail", Handle: sendMail, Until: 24 * time.Hour},
//		{Topic: relay.Others, To: broker},
//	}})
//	if err != nil {
//		return err
//	}
//	defer r.Close(ctx) // before the broker and db
//
// A message is a row of belay_message, which an operation has inserted in its own transaction.
// So it exists exactly if the operation has taken effect. A relay gives it to the route of its
// topic, and deletes it once that has accepted it: at least once, always under one id. A
// consumer that is not idempotent takes the id as its request: see package inbox.
//
// # Order
//
// The messages of a key are sent one after the other, in the order of their commits. If one is
// not accepted, its key is parked: the message is tried again after a pause that grows with its
// attempts, and its followers wait. Other keys go on. A message without a key has no order.
// It is the order of first deliveries: after a crash, or a pause that outlasts a lease, some
// messages come a second time, late.
//
// # Dead letters
//
// A message that its route rejects ([ErrRejected]), or that was not accepted within the
// route's Until, becomes a dead letter. It stays where it is, and its key stays parked, until
// somebody decides: [List], [Retry], [Drop], or the command belay-messages. It is logged, and
// Config.Publisher gets an event. [Count] counts the messages that wait, cheaply.
//
// # Limits
//
// A relay has 1,024 messages in hand at most, and sends those of 256 keys of a route at a time. While
// a destination is unavailable ([ErrUnavailable]), its messages fill half of that at most; their keys
// are parked, and go on when it is back. Calls that hang until their Timeout are no such sign: each
// counts as an attempt, and many of them may fill the rest. A key whose calls are slow slows the
// others of its lane, one in 32. All relays of a database need all routes:
// a relay without the route of a topic leaves its messages to those that come to have their lane.
// A dead letter may have very many followers, through which each read of its lane goes: such a lane is
// read by itself, and less often (200,000 followers: every one to three seconds).
//
// # How it works
//
// Any number of processes may relay one database. Types and data flow:
//
//	Relay    the public type; it owns one of each of these
//	loop     one goroutine; it alone reads and writes the tables
//	lanes    which of the 32 lanes of keys are leased to this relay (belay_lane)
//	pace     which lanes are slow to read, and wait for their turn
//	window   the rows in hand, by key: at most one batch of a key is under way
//	courier  a goroutine that sends one key's batch until a message is not accepted
//
//	belay_message --read--> window --batch--> couriers --result--> loop --write--> DELETE, or belay_parked
//
// Each turn of the loop writes the results of the couriers, reads rows of its own lanes that are
// neither in hand nor parked, from the lowest id on, and hands out the batches of idle keys. Each
// result is written by a statement that is committed with it: a process that is paused behind
// it holds up nobody. A key is parked in the name of a message, and what is left of that when the
// message is gone, a relay deletes within a second or so.
// Between reading and sending it makes one write. Its COMMIT is acknowledged after the COMMIT
// of each row that was read, so no promoted replica lacks a message that was sent.
//
// A courier sends only while the lease of its lane lasts, by the clocks of the process: its monotonic
// clock stands while the host is suspended, so the wall clock counts, too, also for the end of a call. A lease
// is renewed while messages are under way, however long they take. Lanes, and not rows, are
// leased since SKIP LOCKED would let a message overtake one that another relay has locked.
//
// All times in the tables are those of the database's clock. Relays work on MySQL, MariaDB,
// PostgreSQL and SQLite, on the connection pool below the given *gorm.DB. Clusters with several
// writers, such as Galera, and sequences with a cache do not number messages in the order of
// their commits: there the order of a key is lost. So it may be, for rows in hand, in a failover that
// loses commits and gives their ids to other messages.
package relay
