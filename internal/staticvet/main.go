// Command staticvet reports the findings of go vet and of staticcheck. It loads and type-checks each package
// once for both:
//
//	staticvet ./...
//
// It has the flags of staticcheck. It skips files that are not part of a build for this system; package
// sourcevet checks those of other systems.
package main

import (
	"os"

	"golang.org/x/tools/go/analysis/suite/vet"
	"honnef.co/go/tools/lintcmd"
	"honnef.co/go/tools/simple"
	"honnef.co/go/tools/staticcheck"
	"honnef.co/go/tools/stylecheck"
	"honnef.co/go/tools/unused"
)

func main() {
	c := lintcmd.NewCommand("staticvet")
	c.ParseFlags(os.Args[1:])
	c.AddBareAnalyzers(vet.Suite...)
	c.AddAnalyzers(simple.Analyzers...)
	c.AddAnalyzers(staticcheck.Analyzers...)
	c.AddAnalyzers(stylecheck.Analyzers...)
	c.AddAnalyzers(unused.Analyzer)
	c.Run()
}
