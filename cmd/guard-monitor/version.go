package main

import (
	"fmt"
	"io"
	"runtime"
	"runtime/debug"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
)

// released is the version of a binary that make release has built.
var released string

func version() string {
	if released != "" {
		return released
	}
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" {
		return info.Main.Version
	}
	return "(devel)"
}

func printVersion(w io.Writer) error {
	_, err := fmt.Fprintf(w, "guard-monitor %s %s\n", version(), runtime.Version())
	return err
}

// newRegistry holds the metrics of the parts, the build, the runtime and the
// process.
func newRegistry(parts ...prometheus.Collector) *prometheus.Registry {
	build := prometheus.NewGauge(prometheus.GaugeOpts{
		Name:        "belay_build_info",
		Help:        "Always 1; the labels tell what runs.",
		ConstLabels: prometheus.Labels{"version": version(), "goversion": runtime.Version()},
	})
	build.Set(1)
	registry := prometheus.NewRegistry()
	registry.MustRegister(build, collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	registry.MustRegister(parts...)
	return registry
}
