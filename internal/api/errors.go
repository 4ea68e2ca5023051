package api

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/build"
	"go/parser"
	"go/token"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
)

// makesError matches the names of functions that make an error of a format.
var makesError = regexp.MustCompile(`^(Errorf|errorf|Shapef|DTypef|Attrf|attrf|Failf|failf|Fail|fail|Refuse|refuse|require|damaged|invalid)$`)

// Errors returns the texts of the errors that the package in a folder makes, each on a line with the
// function that makes it, in the order of files and lines. A text is the format of a call of
// errors.New, fmt.Errorf or a function of one of the names in [makesError]. Files are chosen as ctx
// says; tests are not among them.
func Errors(ctx *build.Context, dir string) (string, error) {
	found, err := ctx.ImportDir(dir, 0)
	if err != nil {
		return "", err
	}
	var out bytes.Buffer
	for _, name := range slices.Sorted(slices.Values(slices.Concat(found.GoFiles, found.CgoFiles))) {
		file, err := parser.ParseFile(token.NewFileSet(), filepath.Join(dir, name), nil, 0)
		if err != nil {
			return "", err
		}
		for _, d := range file.Decls {
			ast.Inspect(d, func(n ast.Node) bool {
				if text := errorText(n); text != "" {
					fmt.Fprintf(&out, "%s: %s\n", declName(d), text)
				}
				return true
			})
		}
	}
	return out.String(), nil
}

// errorText returns the text of the error that a call makes, "" for any other node.
func errorText(n ast.Node) string {
	call, ok := n.(*ast.CallExpr)
	if !ok {
		return ""
	}
	switch f := call.Fun.(type) {
	case *ast.Ident:
		ok = makesError.MatchString(f.Name)
	case *ast.SelectorExpr:
		x, _ := f.X.(*ast.Ident)
		ok = makesError.MatchString(f.Sel.Name) || x != nil && x.Name == "errors" && f.Sel.Name == "New"
	default:
		ok = false
	}
	if !ok {
		return ""
	}
	for _, arg := range call.Args {
		if text := constantText(arg); text != "" {
			return text
		}
	}
	return ""
}

// constantText returns the value of a string literal, or of a sum that begins with one.
func constantText(x ast.Expr) string {
	switch x := x.(type) {
	case *ast.BasicLit:
		if x.Kind == token.STRING {
			text, _ := strconv.Unquote(x.Value)
			return text
		}
	case *ast.BinaryExpr:
		left, right := constantText(x.X), constantText(x.Y)
		if left != "" && right == "" {
			return left + "…"
		}
		return left + right
	}
	return ""
}

// declName returns the name of a function, with its receiver's type, or "var".
func declName(d ast.Decl) string {
	f, ok := d.(*ast.FuncDecl)
	if !ok {
		return "var"
	}
	if f.Recv == nil || len(f.Recv.List) == 0 {
		return f.Name.Name
	}
	t := f.Recv.List[0].Type
	if star, ok := t.(*ast.StarExpr); ok {
		t = star.X
	}
	if generic, ok := t.(*ast.IndexExpr); ok {
		t = generic.X
	}
	if id, ok := t.(*ast.Ident); ok {
		return id.Name + "." + f.Name.Name
	}
	return f.Name.Name
}
