// Package docs has tests of the documentation: that links lead somewhere, that
// its Go code is code that is compiled and run, and that the tests it names are
// there.
package docs
