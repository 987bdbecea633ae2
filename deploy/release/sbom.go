package main

import (
	"bytes"
	"debug/buildinfo"
	"path/filepath"
	"runtime/debug"
	"strings"
	"time"

	cdx "github.com/CycloneDX/cyclonedx-go"
)

// project is the path of the modules that are released together.
const project = "github.com/belaygo/belay"

// billOfMaterials lists the modules that a Go binary is made of, and the Go that it was
// built with, by what the linker has written into it.
func billOfMaterials(binary, version string, at time.Time) ([]byte, error) {
	info, err := buildinfo.ReadFile(binary)
	if err != nil {
		return nil, err
	}
	main := component(&debug.Module{Path: info.Main.Path, Version: version}, version)
	main.Type, main.Name = cdx.ComponentTypeApplication, filepath.Base(binary)
	parts := []cdx.Component{component(&debug.Module{Path: "std", Version: strings.TrimPrefix(info.GoVersion, "go")}, version)}
	for _, m := range info.Deps {
		if m.Replace != nil && m.Replace.Version != "" {
			m = m.Replace
		}
		parts = append(parts, component(m, version))
	}
	bom := cdx.NewBOM()
	bom.Metadata = &cdx.Metadata{Timestamp: at.UTC().Format(time.RFC3339), Component: &main}
	bom.Components = &parts
	var out bytes.Buffer
	err = cdx.NewBOMEncoder(&out, cdx.BOMFileFormatJSON).SetPretty(true).Encode(bom)
	return out.Bytes(), err
}

func component(m *debug.Module, release string) cdx.Component {
	version := m.Version
	if m.Path == project || strings.HasPrefix(m.Path, project+"/") {
		version = release
	}
	url := "pkg:golang/" + m.Path + "@" + strings.ReplaceAll(version, "+", "%2B")
	return cdx.Component{Type: cdx.ComponentTypeLibrary, BOMRef: url, Name: m.Path, Version: version, PackageURL: url}
}
