// Command sourcevet reports the findings of go vet for other systems, without cgo. It type-checks
// packages from source, where go vet compiles the packages that they import, and reads no more of the
// packages of other modules than their declarations:
//
//	sourcevet -systems windows/amd64,darwin/arm64 ./...
//
// So it does not find misuse of a wrapper of fmt.Printf that another module exports; package staticvet,
// which checks the own system, does.
package main

import (
	"flag"
	"fmt"
	"io"
	"log"
	"os"
	"runtime"
	"strings"

	"golang.org/x/tools/go/analysis/checker"
	"golang.org/x/tools/go/analysis/suite/vet"
	"golang.org/x/tools/go/packages"
)

func main() {
	systems := flag.String("systems", runtime.GOOS+"/"+runtime.GOARCH, "`list` of systems, separated by commas")
	flag.Parse()
	failed := false
	for system := range strings.SplitSeq(*systems, ",") {
		found, err := vetFor(os.Stderr, system, flag.Args())
		if err != nil {
			log.Fatalf("%s: %v", system, err)
		}
		failed = failed || found
	}
	if failed {
		os.Exit(1)
	}
}

// vetFor prints type errors or, if there are none, the findings of go vet's analyzers, and reports
// whether there are any.
func vetFor(w io.Writer, system string, patterns []string) (found bool, err error) {
	all, err := load(system, patterns)
	if err != nil {
		return false, err
	}
	packages.Visit(all, nil, func(p *packages.Package) {
		for _, e := range p.Errors {
			found = true
			fmt.Fprintln(w, e)
		}
	})
	if found {
		return true, nil
	}
	graph, err := checker.Analyze(vet.Suite, withTests(all), nil)
	if err != nil {
		return false, err
	}
	for _, a := range graph.Roots {
		found = found || a.Err != nil || len(a.Diagnostics) > 0
	}
	return found, graph.PrintText(w, -1)
}

// withTests returns the packages without those that are part of another, which has the files of their
// tests, too.
func withTests(all []*packages.Package) []*packages.Package {
	tested := map[string]bool{}
	for _, p := range all {
		if p.ForTest == p.PkgPath {
			tested[p.PkgPath] = true
		}
	}
	var roots []*packages.Package
	for _, p := range all {
		if p.ForTest == p.PkgPath || !tested[p.PkgPath] {
			roots = append(roots, p)
		}
	}
	return roots
}
