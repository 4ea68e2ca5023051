package ops_test

import (
	"fmt"
	"go/ast"
	"go/format"
	"go/parser"
	"go/token"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/irtest"
	"github.com/rlx-go/rlx/ir/ops"
)

// differently are constructors whose parameters are not the operands and attributes of the op in
// order. Tests compare their results with values.
var differently = []string{
	"ALiBi", "AssociativeScan", "Categorical", "Checkpoint", "Cond", "CustomJVP", "CustomVJP", "Flatten", "GroupedMatMul", "LinearCall", "Meshgrid",
	"Pad", "Permutation", "SampleToken", "Scan", "Split", "SwapAxes", "TensorDot", "Unstack", "WindowMask",
}

// TestEveryConstructorAddsItsOp calls each constructor with the operands and attributes of samples
// of the op of its name, and asserts that it adds the node of one sample at least. The values to
// which tests hold the op then hold for the constructor. Tests call any other constructor by name.
func TestEveryConstructorAddsItsOp(t *testing.T) {
	names := constructors(t)
	if *update {
		writeConstructors(t, names)
		return // the table that is compiled in is the old one
	}
	if have := slices.Sorted(maps.Keys(allConstructors)); !slices.Equal(have, names) {
		t.Fatalf("allConstructors are not the exported functions that take a builder: go test ./ir/ops -run EveryConstructor -update")
	}
	named, called := opConstants(t), map[string]bool{}
	for _, f := range packageFiles(t, "*_test.go") {
		if f.Name.Name == "ops_test" && !ast.IsGenerated(f) {
			ast.Inspect(f, func(n ast.Node) bool { return noteCalls(called, n, false) })
		}
	}
	for _, name := range names {
		op, ok := named["Op"+name]
		if !ok || slices.Contains(differently, name) {
			if !called[name] {
				t.Errorf("no test calls %s, whose parameters are not those of an op", name)
			}
			continue
		}
		d, _ := ir.Lookup(op)
		why := "no sample fits its parameters"
		if !slices.ContainsFunc(d.Samples(), func(s ir.Sample) bool { return addsNodeOf(name, op, s, &why) }) {
			t.Errorf("%s does not add %s: %s", name, op, why)
		}
	}
}

// addsNodeOf reports whether a constructor, given what a sample has, makes the graph of the sample.
func addsNodeOf(name string, op ir.Op, s ir.Sample, why *string) bool {
	want, _, err := irtest.SampleGraph(op, s)
	if err != nil {
		return false
	}
	got, err := ir.Build(string(op), func(b *ir.Builder) {
		in := make([]ir.Value, len(s.In))
		for i, a := range s.In {
			in[i] = b.Port(ir.InputPort, strconv.Itoa(i), a.Type())
		}
		f := reflect.ValueOf(allConstructors[name])
		d, _ := ir.Lookup(op)
		args, ok := argumentsOf(f.Type(), b, operands{d.Operands, in}, s.Attrs)
		if !ok {
			b.Fail(fmt.Errorf("a parameter fits nothing of the sample"))
			return
		}
		at := 0
		for _, r := range f.Call(args) {
			list, ok := r.Interface().([]ir.Value)
			if !ok {
				list = []ir.Value{r.Interface().(ir.Value)}
			}
			for _, v := range list {
				b.Output(strconv.Itoa(at), v)
				at++
			}
		}
	})
	if err != nil {
		*why = err.Error()
		return false
	}
	if got.String() != want.String() {
		*why = fmt.Sprintf("of sample %q it makes\n%s, not\n%s", s.Name, got, want)
		return false
	}
	return true
}

// operands are the operands of a node that no parameter of a constructor has had, with their names.
type operands struct {
	names []string
	in    []ir.Value
}

// next returns the first operand, or the zero Value if none is left.
func (o *operands) next() ir.Value {
	if len(o.in) == 0 {
		return ir.Value{}
	}
	return o.remove(0)
}

func (o *operands) remove(i int) (v ir.Value) {
	v, o.in = o.in[i], slices.Delete(slices.Clone(o.in), i, i+1)
	if i < len(o.names) {
		o.names = slices.Delete(slices.Clone(o.names), i, i+1)
	}
	return v
}

// rest returns all that are left.
func (o *operands) rest() (list []ir.Value) {
	list, o.in = o.in, nil
	return list
}

// fill returns a struct of operands, such as [ops.StateSpace]: fields have the operands of their
// names, or the next.
func (o *operands) fill(t reflect.Type) reflect.Value {
	v := reflect.New(t).Elem()
	for i := range t.NumField() {
		at := slices.Index(o.names, strings.ToLower(t.Field(i).Name))
		switch {
		case at < 0:
			v.Field(i).Set(reflect.ValueOf(o.next()))
		case at < len(o.in):
			v.Field(i).Set(reflect.ValueOf(o.remove(at)))
		}
	}
	return v
}

// ofOperands reports whether a type is a struct of operands.
func ofOperands(t reflect.Type) bool {
	return t.Kind() == reflect.Struct && t.PkgPath() == reflect.TypeFor[ops.StateSpace]().PkgPath() && t.NumField() > 0 && t.Field(0).Type == reflect.TypeFor[ir.Value]()
}

// argumentsOf returns arguments for the parameters of a constructor: the operands in order, or by
// name in structs, the attributes as a whole, or their fields in order.
func argumentsOf(f reflect.Type, b *ir.Builder, in operands, attrs ir.Attrs) ([]reflect.Value, bool) {
	fields := flattened(attrs)
	var args []reflect.Value
	for i := range f.NumIn() {
		p := f.In(i)
		switch {
		case p == reflect.TypeFor[*ir.Builder]():
			args = append(args, reflect.ValueOf(b))
		case p == reflect.TypeFor[ir.Value]():
			args = append(args, reflect.ValueOf(in.next()))
		case ofOperands(p):
			args = append(args, in.fill(p))
		case p == reflect.TypeFor[[]ir.Value]() && f.IsVariadic() && i == f.NumIn()-1:
			for _, v := range in.rest() {
				args = append(args, reflect.ValueOf(v))
			}
		case p == reflect.TypeFor[[]ir.Value]():
			args = append(args, reflect.ValueOf(in.rest()))
		case attrs != nil && p == reflect.TypeOf(attrs).Elem():
			args = append(args, reflect.ValueOf(attrs).Elem())
		default:
			at := slices.IndexFunc(fields, func(v reflect.Value) bool { return v.Type() == p || v.CanConvert(p) && v.Kind() == p.Kind() })
			if at < 0 {
				return nil, false
			}
			v := fields[at].Convert(p)
			promoted := 0
			if reflect.PointerTo(v.Type()).Implements(reflect.TypeFor[ir.Attrs]()) { // its fields follow
				promoted = min(v.NumField(), len(fields)-at-1)
			}
			fields = slices.Delete(fields, at, at+1+promoted)
			if !f.IsVariadic() || i < f.NumIn()-1 {
				args = append(args, v)
				continue
			}
			for k := range v.Len() {
				args = append(args, v.Index(k))
			}
		}
	}
	return args, len(in.in) == 0
}

// flattened returns the fields of attributes, those of embedded structs included.
func flattened(attrs ir.Attrs) []reflect.Value {
	if attrs == nil {
		return nil
	}
	var out []reflect.Value
	var walk func(v reflect.Value)
	walk = func(v reflect.Value) {
		for i := range v.NumField() {
			out = append(out, v.Field(i))
			if v.Type().Field(i).Anonymous {
				walk(v.Field(i))
			}
		}
	}
	walk(reflect.ValueOf(attrs).Elem())
	return out
}

// opConstants returns the exported constants of package ops that name ops.
func opConstants(t *testing.T) map[string]ir.Op {
	t.Helper()
	out := map[string]ir.Op{}
	for _, f := range packageFiles(t, "*.go") {
		ast.Inspect(f, func(n ast.Node) bool {
			if s, ok := n.(*ast.ValueSpec); ok && len(s.Values) == 1 && strings.HasPrefix(s.Names[0].Name, "Op") {
				if lit, ok := s.Values[0].(*ast.BasicLit); ok {
					name, _ := strconv.Unquote(lit.Value)
					out[s.Names[0].Name] = ir.Op(name)
				}
			}
			return true
		})
	}
	return out
}

// writeConstructors writes the file of allConstructors.
func writeConstructors(t *testing.T, names []string) {
	t.Helper()
	var text strings.Builder
	text.WriteString("// Code generated by go test ./ir/ops -run EveryConstructor -update. DO NOT EDIT.\n\npackage ops_test\n\n" +
		"import \"github.com/rlx-go/rlx/ir/ops\"\n\n// allConstructors are the exported functions of package ops that take a builder.\nvar allConstructors = map[string]any{\n")
	for _, name := range names {
		fmt.Fprintf(&text, "\t%q: ops.%s,\n", name, name)
	}
	text.WriteString("}\n")
	source, err := format.Source([]byte(text.String()))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile("constructors_table_test.go", source, 0o644); err != nil {
		t.Fatal(err)
	}
}

// packageFiles parses files of this folder.
func packageFiles(t *testing.T, pattern string) (files []*ast.File) {
	t.Helper()
	paths, err := filepath.Glob(pattern)
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range paths {
		f, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution|parser.ParseComments)
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, f)
	}
	return files
}
