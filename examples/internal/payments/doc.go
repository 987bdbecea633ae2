// Package payments has a test of guard.Call across processes: hundreds of payments through a provider
// that is a process, too, while the provider and the services that call it are killed, paused and cut off
// in turn. A judge then compares the services' tables with the provider's ledger.
//
// # The provider
//
// It acts once for an id, as long as it remembers that: for less than a minute, so that the run lasts
// longer. Then it charges again. It answers late, answers nothing, fails, refuses payments, and dies
// between a charge and its answer. Its ledger is a file, which outlives it.
//
// # The plan
//
// Customers repeat each payment until it is settled or undecided. Some give up after the first answer
// that is neither. Faults strike in turn, in an order that a seed shuffles, which the run prints. One of
// them keeps the answers back for longer than Until: the payments under way have to be listed as
// undecided. At the end the provider forgets all ids, and every payment is requested again.
//
// BELAY_PAYMENTS names the number of payments, 2,000 in make e2e, and BELAY_E2E_SEED repeats a plan. With
// 500 payments or more the databases are the test's own, and are killed, too; with less, some faults strike.
//
// # The judge
//
// Each payment is settled, or once.Open lists it as undecided. A payment that is paid has one charge,
// one that is refused has none, and one that is undecided has at most one. The stock has what the
// settled and the undecided ones have left.
//
// TestJudgeOfServices breaks the service on purpose, and the judge must find each.
package payments
