package api

import (
	"bytes"
	"errors"
	"fmt"
	"go/ast"
	"go/build"
	"go/doc"
	"go/format"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// Print returns the exported declarations of the package in a folder, one after the other in
// the order of their names: constants, variables and functions, then each type with its
// exported fields, its constructors and its methods. Below an alias of a type of a package that
// lies below a folder named internal stands that type, whose members are exported by the alias
// alone. Function bodies, comments and unexported members are left out. Files are chosen as ctx
// says; tests are not among them.
func Print(ctx *build.Context, dir string) (string, error) {
	p := printer{ctx: ctx, fset: token.NewFileSet()}
	pkg, err := p.load(dir)
	if err != nil {
		return "", err
	}
	p.values(pkg.Consts)
	p.values(pkg.Vars)
	p.funcs(pkg.Funcs)
	for _, t := range pkg.Types {
		p.decl(t.Decl)
		p.values(t.Consts)
		p.values(t.Vars)
		p.funcs(t.Funcs)
		p.funcs(t.Methods)
		if err := p.aliased(dir, pkg, t); err != nil {
			return "", err
		}
	}
	return p.out.String(), p.err
}

// load reads the package in a folder as go doc without -u does: unexported declarations are
// removed.
func (p *printer) load(dir string) (*doc.Package, error) {
	found, err := p.ctx.ImportDir(dir, 0)
	if err != nil {
		return nil, err
	}
	var files []*ast.File
	for _, name := range slices.Concat(found.GoFiles, found.CgoFiles) {
		file, err := parser.ParseFile(p.fset, filepath.Join(dir, name), nil, 0)
		if err != nil {
			return nil, err
		}
		files = append(files, file)
	}
	pkg, err := doc.NewFromFiles(p.fset, files, found.ImportPath)
	if err != nil {
		return nil, err
	}
	pkg.Imports = found.Imports
	return pkg, nil
}

// aliased prints the internal types that a declaration of types in pkg names by aliases.
func (p *printer) aliased(dir string, pkg *doc.Package, t *doc.Type) error {
	for _, spec := range t.Decl.Specs {
		spec, ok := spec.(*ast.TypeSpec)
		if !ok || !spec.Assign.IsValid() {
			continue
		}
		of, ok := spec.Type.(*ast.SelectorExpr)
		if !ok {
			continue
		}
		at := slices.IndexFunc(pkg.Imports, func(imported string) bool { return path.Base(imported) == of.X.(*ast.Ident).Name })
		if at < 0 || !slices.Contains(strings.Split(pkg.Imports[at], "/"), "internal") {
			continue
		}
		folder, err := folderOf(dir, pkg.Imports[at])
		if err != nil {
			return err
		}
		inner, err := p.load(folder)
		if err != nil {
			return err
		}
		for _, x := range inner.Types {
			if x.Name == of.Sel.Name {
				p.decl(x.Decl)
				p.funcs(x.Methods)
			}
		}
	}
	return nil
}

// folderOf returns the folder of a package of the module that dir lies in.
func folderOf(dir, pkg string) (string, error) {
	for up := dir; ; up = filepath.Join(up, "..") {
		text, err := os.ReadFile(filepath.Join(up, "go.mod"))
		if errors.Is(err, fs.ErrNotExist) {
			if above, err := filepath.Abs(up); err == nil && above != filepath.Dir(above) {
				continue
			}
		}
		if err != nil {
			return "", err
		}
		module, _, _ := strings.Cut(strings.TrimPrefix(string(text), "module "), "\n")
		rel, ok := strings.CutPrefix(pkg, module+"/")
		if !ok {
			return "", fmt.Errorf("package %s: want one of module %s", pkg, module)
		}
		return filepath.Join(up, filepath.FromSlash(rel)), nil
	}
}

// A printer writes declarations and keeps the first error.
type printer struct {
	ctx  *build.Context
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
