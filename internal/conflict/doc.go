// Package conflict describes a write that the database refused, and the evidence for its
// cause. dbguard exports its types; the engine of the guarded transaction fills them.
package conflict
