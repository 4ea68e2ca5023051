package recipe_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"testing"

	"github.com/rlx-go/rlx/internal/recipe"
)

// TestNamesAreThoseOfTheSwitch reads the cases of [recipe.Optimizer] from its source.
func TestNamesAreThoseOfTheSwitch(t *testing.T) {
	var cases []string
	inspect(t, "optimizer.go", func(n ast.Node) bool {
		if f, ok := n.(*ast.FuncDecl); ok {
			return f.Name.Name == "Optimizer"
		}
		if c, ok := n.(*ast.CaseClause); ok {
			for _, e := range c.List {
				name, _ := strconv.Unquote(e.(*ast.BasicLit).Value)
				cases = append(cases, name)
			}
		}
		return true
	})
	if slices.Sort(cases); !slices.Equal(cases, recipe.OptimizerNames) {
		t.Errorf("OptimizerNames are %q: the cases of Optimizer are %q", recipe.OptimizerNames, cases)
	}
}

// TestEveryOptimizerHasAName finds the optimizers of package optim, the types with a method Begin, in
// its source.
func TestEveryOptimizerHasAName(t *testing.T) {
	var named []string
	for _, name := range recipe.OptimizerNames {
		o, err := recipe.Optimizer(name, nil)
		if err != nil {
			t.Fatal(err)
		}
		named = append(named, reflect.TypeOf(o).Name())
	}
	files, err := filepath.Glob("../../autodiff/optim/*.go")
	if err != nil || len(files) == 0 {
		t.Fatal(err)
	}
	for _, file := range files {
		inspect(t, file, func(n ast.Node) bool {
			f, ok := n.(*ast.FuncDecl)
			if ok && f.Recv != nil && f.Name.Name == "Begin" {
				of, ok := f.Recv.List[0].Type.(*ast.Ident)
				if ok && of.IsExported() && !slices.Contains(named, of.Name) {
					t.Errorf("the optimizer %s has no name", of.Name)
				}
			}
			return true
		})
	}
}

func inspect(t *testing.T, file string, f func(n ast.Node) bool) {
	t.Helper()
	tree, err := parser.ParseFile(token.NewFileSet(), file, nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	ast.Inspect(tree, f)
}
