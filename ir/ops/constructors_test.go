package ops_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/ops"
)

const root = "../.."

// TestEveryConstructorIsCalled checks that some code calls each exported function of this package
// that adds to a builder: definitions are tested by their samples, which reach no constructor.
func TestEveryConstructorIsCalled(t *testing.T) {
	called := map[string]bool{}
	for _, f := range goFiles(t) {
		inside := f.Name.Name == "ops" || f.Name.Name == "ops_test"
		ast.Inspect(f, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.FuncDecl:
				if n.Body != nil {
					ast.Inspect(n.Body, func(x ast.Node) bool { return noteCalls(called, x, inside) })
				}
				return false
			case *ast.GenDecl:
				ast.Inspect(n, func(x ast.Node) bool { return noteCalls(called, x, inside) })
				return false
			}
			return true
		})
	}
	var missing []string
	for _, name := range constructors(t) {
		if !called[name] {
			missing = append(missing, name)
		}
	}
	if len(missing) > 0 {
		t.Errorf("nothing calls %s", strings.Join(missing, ", "))
	}
}

// noteCalls records the functions of package ops that an expression names.
func noteCalls(called map[string]bool, n ast.Node, inside bool) bool {
	switch n := n.(type) {
	case *ast.SelectorExpr:
		if x, ok := n.X.(*ast.Ident); ok && x.Name == "ops" {
			called[n.Sel.Name] = true
		}
		return !inside || isPackage(n.X)
	case *ast.Ident:
		if inside {
			called[n.Name] = true
		}
	}
	return true
}

func isPackage(x ast.Expr) bool { _, ok := x.(*ast.Ident); return !ok }

// goFiles parses the Go files of the module.
func goFiles(t *testing.T) (files []*ast.File) {
	t.Helper()
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && (d.Name() == "node_modules" || d.Name() == "build" || strings.HasPrefix(d.Name(), ".") && path != root):
			return fs.SkipDir
		case strings.HasSuffix(path, ".go"):
			f, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
			files = append(files, f)
			return err
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

// constructors returns the exported functions of this package whose first parameter is a builder.
func constructors(t *testing.T) (names []string) {
	t.Helper()
	for _, f := range packageFiles(t, "*.go") {
		if f.Name.Name != "ops" {
			continue
		}
		for _, d := range f.Decls {
			if fn, ok := d.(*ast.FuncDecl); ok && fn.Recv == nil && fn.Name.IsExported() && takesBuilder(fn) {
				names = append(names, fn.Name.Name)
			}
		}
	}
	slices.Sort(names)
	return names
}

func takesBuilder(fn *ast.FuncDecl) bool {
	if len(fn.Type.Params.List) == 0 {
		return false
	}
	star, ok := fn.Type.Params.List[0].Type.(*ast.StarExpr)
	if !ok {
		return false
	}
	sel, ok := star.X.(*ast.SelectorExpr)
	return ok && sel.Sel.Name == "Builder"
}

// functionConstructors are the constructors of the ops whose values [functionValues] and
// [pairValues] hold, with the parameters that those values were computed for.
var functionConstructors = map[ir.Op]func(b *ir.Builder, in []ir.Value) ir.Value{
	"quick_gelu":       ofOne(ops.QuickGelu),
	"softplus":         ofOne(ops.Softplus),
	"log_sigmoid":      ofOne(ops.LogSigmoid),
	"mish":             ofOne(ops.Mish),
	"softsign":         ofOne(ops.Softsign),
	"tanh_shrink":      ofOne(ops.TanhShrink),
	"relu6":            ofOne(ops.Relu6),
	"selu":             ofOne(ops.Selu),
	"hard_tanh":        ofOne(ops.HardTanh),
	"hard_sigmoid":     ofOne(ops.HardSigmoid),
	"hard_swish":       ofOne(ops.HardSwish),
	"cbrt":             ofOne(ops.Cbrt),
	"exp2":             ofOne(ops.Exp2),
	"log2":             ofOne(ops.Log2),
	"log10":            ofOne(ops.Log10),
	"asinh":            ofOne(ops.Asinh),
	"acosh":            ofOne(ops.Acosh),
	"atanh":            ofOne(ops.Atanh),
	"erfc":             ofOne(ops.Erfc),
	"erfinv":           ofOne(ops.Erfinv),
	"lgamma":           ofOne(ops.Lgamma),
	"digamma":          ofOne(ops.Digamma),
	"logit":            ofOne(ops.Logit),
	"sinc":             ofOne(ops.Sinc),
	"i0e":              ofOne(ops.I0e),
	"i1e":              ofOne(ops.I1e),
	"degrees":          ofOne(ops.Degrees),
	"radians":          ofOne(ops.Radians),
	"square":           ofOne(ops.Square),
	"reciprocal":       ofOne(ops.Reciprocal),
	"squareplus":       withAlpha(ops.Squareplus, 4),
	"leaky_relu":       withAlpha(ops.LeakyRelu, 0.01),
	"thresholded_relu": withAlpha(ops.ThresholdedRelu, 1),
	"elu":              withAlpha(ops.Elu, 1),
	"celu":             withAlpha(ops.Celu, 1),
	"hard_shrink":      withAlpha(ops.HardShrink, 0.5),
	"soft_shrink":      withAlpha(ops.SoftShrink, 0.5),
	"hypot":            ofTwo(ops.Hypot),
	"logaddexp":        ofTwo(ops.LogAddExp),
	"xlogy":            ofTwo(ops.XLogY),
	"xlog1py":          ofTwo(ops.XLog1pY),
	"copysign":         ofTwo(ops.CopySign),
	"mod":              ofTwo(ops.Mod),
	"floor_divide":     ofTwo(ops.FloorDivide),
}

func ofOne(f func(b *ir.Builder, x ir.Value) ir.Value) func(*ir.Builder, []ir.Value) ir.Value {
	return func(b *ir.Builder, in []ir.Value) ir.Value { return f(b, in[0]) }
}

func withAlpha(f func(b *ir.Builder, x ir.Value, alpha float64) ir.Value, alpha float64) func(*ir.Builder, []ir.Value) ir.Value {
	return func(b *ir.Builder, in []ir.Value) ir.Value { return f(b, in[0], alpha) }
}

func ofTwo(f func(b *ir.Builder, x, y ir.Value) ir.Value) func(*ir.Builder, []ir.Value) ir.Value {
	return func(b *ir.Builder, in []ir.Value) ir.Value { return f(b, in[0], in[1]) }
}

// constructed returns the graph of the function that a constructor adds, of ports x0, x1, …
func constructed(t *testing.T, op ir.Op, in []*ir.Array) *ir.Graph {
	t.Helper()
	construct := functionConstructors[op]
	if construct == nil {
		t.Fatalf("functionConstructors lacks %s", op)
	}
	g, err := ir.Build(string(op), func(b *ir.Builder) {
		operands := make([]ir.Value, len(in))
		for i, x := range in {
			operands[i] = b.Input("x"+strconv.Itoa(i), x.DType, ir.Dims(x.Dims...)...)
		}
		b.Output("y", construct(b, operands))
	})
	if err != nil {
		t.Fatal(err)
	}
	return g
}
