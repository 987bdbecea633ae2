// Package reader reads for Belay itself on a transaction's connection: protected rows,
// as of the snapshot and as they are committed now, and the catalogue's descriptions of
// their tables. It writes nothing and decides nothing.
package reader
