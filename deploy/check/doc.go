// Package check has tests of what is deployed: docker-compose.yml, the manifests for
// Kubernetes, images and workflows. It is a module of its own, so that nobody who uses
// Belay gets the loaders of these.
package check
