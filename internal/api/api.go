package api

import (
	"bytes"
	"go/ast"
	"go/build"
	"go/doc"
	"go/format"
	"go/parser"
	"go/token"
	"path/filepath"
	"slices"
	"strings"
)

// Print returns the exported declarations of the package in a folder, one after the other in
// the order of their names: constants, variables and functions, then each type with its
// exported fields, its constructors and its methods. Function bodies, comments and unexported
// members are left out. Files are chosen as ctx says; tests are not among them.
func Print(ctx *build.Context, dir string) (string, error) {
	found, err := ctx.ImportDir(dir, 0)
	if err != nil {
		return "", err
	}
	fset := token.NewFileSet()
	var files []*ast.File
	for _, name := range slices.Concat(found.GoFiles, found.CgoFiles) {
		file, err := parser.ParseFile(fset, filepath.Join(dir, name), nil, 0)
		if err != nil {
			return "", err
		}
		files = append(files, file)
	}
	// The mode of go doc without -u: what is not exported is cut from the declarations.
	pkg, err := doc.NewFromFiles(fset, files, found.ImportPath)
	if err != nil {
		return "", err
	}
	p := printer{fset: fset}
	p.values(pkg.Consts)
	p.values(pkg.Vars)
	p.funcs(pkg.Funcs)
	for _, t := range pkg.Types {
		p.decl(t.Decl)
		p.values(t.Consts)
		p.values(t.Vars)
		p.funcs(t.Funcs)
		p.funcs(t.Methods)
	}
	return p.out.String(), p.err
}

// A printer writes declarations and keeps the first error.
type printer struct {
	fset *token.FileSet
	out  bytes.Buffer
	err  error
}

func (p *printer) values(list []*doc.Value) {
	for _, v := range list {
		p.decl(v.Decl)
	}
}

func (p *printer) funcs(list []*doc.Func) {
	for _, f := range list {
		f.Decl.Body = nil
		p.decl(f.Decl)
	}
}

// decl writes one declaration and an empty line. It drops the comment that go/format writes
// where fields were cut, and the empty lines that other comments stood in.
func (p *printer) decl(d ast.Node) {
	var text bytes.Buffer
	if err := format.Node(&text, p.fset, d); err != nil {
		if p.err == nil {
			p.err = err
		}
		return
	}
	for line := range strings.Lines(text.String()) {
		if text := strings.TrimSpace(line); text != "" && !strings.HasPrefix(text, "// contains filtered or unexported") {
			p.out.WriteString(strings.TrimRight(line, "\n") + "\n")
		}
	}
	p.out.WriteByte('\n')
}
