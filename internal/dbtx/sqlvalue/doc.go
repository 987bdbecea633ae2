// Package sqlvalue compares values of columns: as Go has them in models, and as databases
// keep them.
package sqlvalue
