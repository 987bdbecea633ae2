// Package e2e has a test of examples/twoservices across processes: thousands of sales with a message
// each, while the processes of both services, both databases and the broker are killed, paused and
// cut off in turn. A judge then compares the tables of both services.
//
// # The plan
//
// Customers request sales until each is answered, and a fault strikes after each hundred or so. A
// seed, which the run prints, shuffles the faults and chooses the victims. Real processes do not replay exactly, so the seed repeats the plan and not the
// schedule. A process that is paused goes on when others have taken over its work: the lanes of a
// relay, or the queue.
//
// BELAY_E2E names the number of sales, 10,000 in make e2e, and BELAY_E2E_SEED repeats a plan. With
// 2,000 sales or more the servers are the test's own, and are killed, too.
//
// # The judge
//
// It knows nothing of messages. The shop has a row for each sale, with the sale's number of the item.
// The warehouse has a row for each shipment, with its place among those of the item. No index keeps
// a sale from being shipped twice, and nothing but the order of the messages lets the numbers grow
// with the places.
//
// TestJudge breaks the services on purpose: without the inbox, with the message in a transaction of
// its own, and without the single active consumer. The judge must find each.
package e2e
