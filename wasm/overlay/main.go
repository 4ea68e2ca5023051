// Command overlay writes the file of "go build -overlay" that builds a package of ops without the documentation
// of its ops: pages compile graphs and never show it, and its texts are 2 % of the compiler's module.
//
//	go run ./wasm/overlay build/_ops ir/ops
//
// writes build/_ops/overlay.json and the changed source files beside it, in a folder that ./... leaves out. What changes are string literals: those of
// fields, constants, variables and parameters that are named doc or constraint, or end in constraints or Doc, and of such columns of tables.
package main

import (
	"encoding/json"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"strings"
)

func main() {
	if len(os.Args) != 3 {
		fmt.Fprintln(os.Stderr, "usage: overlay TO PACKAGE")
		os.Exit(2)
	}
	if err := write(os.Args[1], os.Args[2]); err != nil {
		fmt.Fprintln(os.Stderr, "overlay:", err)
		os.Exit(1)
	}
}

// write writes the overlay of the package in a folder to another folder.
func write(to, from string) error {
	names, err := filepath.Glob(filepath.Join(from, "*.go"))
	if err != nil {
		return err
	}
	if len(names) == 0 {
		return fmt.Errorf("%s has no source files", from)
	}
	if err := os.MkdirAll(to, 0o755); err != nil {
		return err
	}
	p := sources{set: token.NewFileSet(), documented: map[string][]int{}}
	for _, name := range names {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		if err := p.read(name); err != nil {
			return err
		}
	}
	replace := map[string]string{}
	for _, f := range p.files {
		path, err := filepath.Abs(f.name)
		if err != nil {
			return err
		}
		changed, err := filepath.Abs(filepath.Join(to, filepath.Base(f.name)))
		if err != nil {
			return err
		}
		if err := os.WriteFile(changed, p.undocumented(f), 0o644); err != nil {
			return err
		}
		replace[path] = changed
	}
	text, err := json.MarshalIndent(map[string]any{"Replace": replace}, "", "\t")
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(to, "overlay.json"), text, 0o644)
}

// sources are the files of a package.
type sources struct {
	set        *token.FileSet
	files      []source
	documented map[string][]int // the parameters of functions that are documentation
}

type source struct {
	name   string
	text   []byte
	syntax *ast.File
}

func (p *sources) read(name string) error {
	text, err := os.ReadFile(name)
	if err != nil {
		return err
	}
	syntax, err := parser.ParseFile(p.set, name, text, parser.SkipObjectResolution)
	if err != nil {
		return err
	}
	p.files = append(p.files, source{name, text, syntax})
	for _, d := range syntax.Decls {
		if f, ok := d.(*ast.FuncDecl); ok && f.Recv == nil {
			p.documented[f.Name.Name] = documentation(f.Type.Params)
		}
	}
	return nil
}

// documentation returns the places of parameters that are documentation.
func documentation(params *ast.FieldList) (places []int) {
	at := 0
	for _, field := range params.List {
		for _, name := range field.Names {
			if isDocumentation(name) {
				places = append(places, at)
			}
			at++
		}
	}
	return places
}

// documentationOf returns the places of documentation in the rows of a table: a slice of a struct type that has no name.
func documentationOf(table ast.Expr) []int {
	if list, ok := table.(*ast.ArrayType); ok {
		if row, ok := list.Elt.(*ast.StructType); ok {
			return documentation(row.Fields)
		}
	}
	return nil
}

// isDocumentation reports whether an expression is a name of documentation, or a field of such a name.
func isDocumentation(e ast.Expr) bool {
	switch e := e.(type) {
	case *ast.SelectorExpr:
		return isDocumentation(e.Sel)
	case *ast.Ident:
		name := strings.ToLower(e.Name)
		return name == "doc" || name == "constraint" || strings.HasSuffix(name, "constraints") || strings.HasSuffix(e.Name, "Doc")
	}
	return false
}

// undocumented returns the text of a file with empty documentation.
func (p *sources) undocumented(f source) []byte {
	var out []byte
	done := 0
	clear := func(e ast.Expr) {
		ast.Inspect(e, func(n ast.Node) bool {
			if lit, ok := n.(*ast.BasicLit); ok && lit.Kind == token.STRING {
				begin, end := p.set.Position(lit.Pos()).Offset, p.set.Position(lit.End()).Offset
				if begin >= done {
					out = append(append(out, f.text[done:begin]...), `""`...)
					done = end
				}
			}
			return true
		})
	}
	ast.Inspect(f.syntax, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.KeyValueExpr:
			if isDocumentation(n.Key) {
				clear(n.Value)
			}
		case *ast.AssignStmt:
			for i, to := range n.Lhs {
				if isDocumentation(to) && i < len(n.Rhs) {
					clear(n.Rhs[i])
				}
			}
		case *ast.ValueSpec:
			for i, name := range n.Names {
				if isDocumentation(name) && i < len(n.Values) {
					clear(n.Values[i])
				}
			}
		case *ast.CompositeLit:
			for _, i := range documentationOf(n.Type) {
				for _, row := range n.Elts {
					if row, ok := row.(*ast.CompositeLit); ok && i < len(row.Elts) {
						clear(row.Elts[i])
					}
				}
			}
		case *ast.CallExpr:
			if name, ok := n.Fun.(*ast.Ident); ok {
				for _, i := range p.documented[name.Name] {
					if i < len(n.Args) {
						clear(n.Args[i])
					}
				}
			}
		}
		return true
	})
	return append(out, f.text[done:]...)
}
