package rlx_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"strings"
	"testing"
)

// TestComparisonsFailForNaN finds comparisons of tests that NaN would pass, as math.Abs(got-want) > limit, but for those beside a
// check of NaN.
func TestComparisonsFailForNaN(t *testing.T) {
	eachGoFile(t, func(path string) error {
		if !strings.HasSuffix(path, "_test.go") {
			return nil
		}
		files := token.NewFileSet()
		f, err := parser.ParseFile(files, path, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		ast.Inspect(f, func(n ast.Node) bool {
			s, is := n.(*ast.IfStmt)
			if is && calls(s.Cond, "IsNaN") {
				return false
			}
			b, compares := n.(*ast.BinaryExpr)
			if is {
				b, compares = s.Cond.(*ast.BinaryExpr)
			}
			if compares && b.Op == token.GTR && (isDistance(b.X) || is && setsDistance(s.Init, b.X)) {
				t.Errorf("%v: NaN passes: write !(math.Abs(got-want) <= limit)", files.Position(b.Pos()))
			}
			return true
		})
		return nil
	})
}

// isDistance reports whether an expression is math.Abs(x-y).
func isDistance(x ast.Expr) bool {
	c, is := x.(*ast.CallExpr)
	if !is || !calls(c.Fun, "Abs") {
		return false
	}
	b, is := c.Args[0].(*ast.BinaryExpr)
	return is && b.Op == token.SUB
}

// setsDistance reports whether a statement sets a variable to math.Abs(x-y).
func setsDistance(s ast.Stmt, x ast.Expr) bool {
	a, is := s.(*ast.AssignStmt)
	name, of := x.(*ast.Ident)
	if !is || !of || len(a.Lhs) != 1 || len(a.Rhs) != 1 {
		return false
	}
	set, named := a.Lhs[0].(*ast.Ident)
	return named && set.Name == name.Name && isDistance(a.Rhs[0])
}

// calls reports whether an expression names a function of package math.
func calls(x ast.Expr, name string) (found bool) {
	ast.Inspect(x, func(n ast.Node) bool {
		s, is := n.(*ast.SelectorExpr)
		if is && s.Sel.Name == name {
			id, of := s.X.(*ast.Ident)
			found = found || of && id.Name == "math"
		}
		return true
	})
	return found
}
