// Package check has tests of docker-compose.yml. It is a module of its own, so
// that nobody who uses Belay gets the loader of the Compose specification.
package check
