// Package lockhistory judges what callers in several processes saw of an engine's locks:
// whether there is an order of their holds in which none overlap and tokens grow. It is
// for tests of engines.
//
// [Test] runs the same histories on every engine: processes that are killed or stand still,
// and a store that fails. The test binary is those processes: its TestMain calls [Main].
package lockhistory
