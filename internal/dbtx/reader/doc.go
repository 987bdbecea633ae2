// Package reader reads for Belay itself on the connection of a transaction: protected
// rows, as of the snapshot and as they are committed now, and what the catalogue says of
// their tables. It writes nothing and decides nothing.
package reader
