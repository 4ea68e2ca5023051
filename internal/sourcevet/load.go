package main

import (
	"errors"
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"os"
	"strings"

	"golang.org/x/tools/go/packages"
)

// loader type-checks packages for a system.
type loader struct {
	files *token.FileSet
	sizes types.Sizes
	own   map[*packages.Package]bool // those of the patterns, which are checked whole
}

// load returns the packages that patterns name and those of their tests, as analyzers need them. Of the
// packages that they import, analyzers see those that patterns name, too.
func load(system string, patterns []string) ([]*packages.Package, error) {
	goos, arch, _ := strings.Cut(system, "/")
	l := &loader{token.NewFileSet(), types.SizesFor("gc", arch), map[*packages.Package]bool{}}
	all, err := packages.Load(&packages.Config{
		Mode: packages.NeedName | packages.NeedFiles | packages.NeedImports | packages.NeedDeps | packages.NeedModule | packages.NeedForTest,
		Env:  append(os.Environ(), "GOOS="+goos, "GOARCH="+arch, "CGO_ENABLED=0"), Tests: true,
	}, patterns...)
	if err != nil {
		return nil, err
	}
	var own []*packages.Package
	for _, p := range all {
		if !strings.HasSuffix(p.ID, ".test") { // a generated main package
			l.own[p], own = true, append(own, p)
		}
	}
	packages.Visit(own, nil, l.check)
	for _, p := range own {
		for path, imported := range p.Imports {
			if !l.own[imported] {
				delete(p.Imports, path)
			}
		}
	}
	return own, nil
}

// check parses and type-checks a package, whose imports have been checked.
func (l *loader) check(p *packages.Package) {
	fail := func(err error) {
		e := packages.Error{Msg: err.Error(), Kind: packages.TypeError}
		if at, ok := errors.AsType[types.Error](err); ok {
			e.Pos, e.Msg = l.files.Position(at.Pos).String(), at.Msg
		}
		p.Errors, p.IllTyped = append(p.Errors, e), true
	}
	mode := parser.SkipObjectResolution
	if l.own[p] {
		mode = parser.AllErrors | parser.ParseComments
	}
	for _, name := range p.GoFiles {
		f, err := parser.ParseFile(l.files, name, nil, mode)
		if err != nil {
			fail(err)
			return
		}
		p.Syntax = append(p.Syntax, f)
	}
	p.Fset, p.TypesSizes, p.TypesInfo = l.files, l.sizes, &types.Info{}
	if l.own[p] {
		p.TypesInfo = newInfo()
	}
	c := types.Config{
		Importer: importer{p}, Sizes: l.sizes, Error: fail,
		IgnoreFuncBodies: !l.own[p],
	}
	if p.Module != nil && p.Module.GoVersion != "" {
		c.GoVersion = "go" + p.Module.GoVersion
	}
	p.Types, _ = c.Check(p.PkgPath, l.files, p.Syntax, p.TypesInfo) // fail gets the errors
	if !l.own[p] {
		p.Syntax = nil
	}
}

func newInfo() *types.Info {
	return &types.Info{
		Types:        map[ast.Expr]types.TypeAndValue{},
		Defs:         map[*ast.Ident]types.Object{},
		Uses:         map[*ast.Ident]types.Object{},
		Implicits:    map[ast.Node]types.Object{},
		Instances:    map[*ast.Ident]types.Instance{},
		Scopes:       map[ast.Node]*types.Scope{},
		Selections:   map[*ast.SelectorExpr]*types.Selection{},
		FileVersions: map[*ast.File]string{},
	}
}

// importer finds the imports of a package by their paths in its source.
type importer struct{ of *packages.Package }

func (i importer) Import(path string) (*types.Package, error) {
	if path == "unsafe" {
		return types.Unsafe, nil
	}
	if p := i.of.Imports[path]; p != nil && p.Types != nil {
		return p.Types, nil
	}
	return nil, errors.New("no package " + path)
}
