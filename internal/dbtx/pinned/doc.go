// Package pinned is the one connection on which a guarded transaction runs, as gorm sees
// it. Every statement passes its transaction, before it is sent and after it.
package pinned
