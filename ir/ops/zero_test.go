package ops_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/ops"
)

// optioned are the constructors that take a struct of attributes. Their other operands are
// those of the op's first sample, in the op's order but for keys, which come first.
var optioned = map[string]any{
	"AdaNorm": ops.AdaNorm, "ArgSort": ops.ArgSort, "Attention": ops.Attention, "AvgPool": ops.AvgPool, "AxisIndex": ops.AxisIndex,
	"BatchNormTraining": ops.BatchNormTraining, "CTCLoss": ops.CTCLoss, "Conv2D": ops.Conv2D, "ConvGeneral": ops.ConvGeneral,
	"ConvTranspose": ops.ConvTranspose, "CrossEntropyLoss": ops.CrossEntropyLoss, "CumLogSumExp": ops.CumLogSumExp, "CumMax": ops.CumMax,
	"CumMin": ops.CumMin, "CumProd": ops.CumProd, "CumSum": ops.CumSum, "DotGeneral": ops.DotGeneral, "FFT": ops.FFT, "FFTShift": ops.FFTShift,
	"FakeQuant": ops.FakeQuant, "FakeQuantLSQ": ops.FakeQuantLSQ, "Focal": ops.Focal, "GRU": ops.GRU, "Gather": ops.Gather, "ISTFT": ops.ISTFT,
	"Jacobi": ops.Jacobi, "LSTM": ops.LSTM, "LinearRecurrence": ops.LinearRecurrence, "LogMel": ops.LogMel, "MaxPool": ops.MaxPool,
	"MelFilterbank": ops.MelFilterbank, "MoERoute": ops.MoERoute, "NLL": ops.NLL, "OverlapAdd": ops.OverlapAdd, "QConv2D": ops.QConv2D,
	"QMatMul": ops.QMatMul, "RNN": ops.RNN, "Resize": ops.Resize, "Rope": ops.Rope, "STFT": ops.STFT, "SampleToken": ops.SampleToken,
	"Scatter": ops.Scatter, "ScatterAdd": ops.ScatterAdd, "ScatterMax": ops.ScatterMax, "ScatterMin": ops.ScatterMin, "ScatterMul": ops.ScatterMul,
	"SegmentReduce": ops.SegmentReduce, "SinkAttention": ops.SinkAttention, "CachedAttention": ops.CachedAttention, "Solve": ops.Solve, "Sort": ops.Sort, "TopK": ops.TopK, "TriangularSolve": ops.TriangularSolve,
	"Welch": ops.Welch, "Window": ops.Window, "Windows": ops.Windows,
}

// inward are constructors that derivatives use, that take functions, or whose
// devices cannot be omitted.
var inward = map[string]bool{
	"AttentionForward": true, "AttentionBackward": true, "LinearRecurrences": true, "AssociativeScan": true,
	"AllReduce": true, "AllGather": true, "ReduceScatter": true, "AllToAll": true, "CollectivePermute": true, "CollectiveBroadcast": true,
}

// TestZeroAttributesAreTheDefaults calls each constructor with a zero struct of attributes:
// it makes the node that TypeScript makes where they are omitted, or refuses what TypeScript
// refuses too.
func TestZeroAttributesAreTheDefaults(t *testing.T) {
	for _, name := range constructorsWithAttrs(t) {
		constructor := optioned[name]
		if constructor == nil && !inward[name] {
			t.Errorf("no test of the zero value of the attributes of %s", name)
		}
		if constructor == nil {
			continue
		}
		made := 0
		for _, op := range ir.Ops() {
			d, _ := ir.Lookup(op)
			if d.NewAttrs == nil || reflect.TypeOf(d.NewAttrs()).Elem() != attrsOf(constructor) || len(d.Samples()) == 0 {
				continue
			}
			in := d.Samples()[0].In
			zero, zeroErr := nodeOfZero(constructor, op, in)
			if zero == "" && zeroErr == nil {
				continue // another op's constructor
			}
			made++
			omitted, err := nodeOfOmitted(d, in)
			if zero != omitted || (zeroErr == nil) != (err == nil) {
				t.Errorf("%s by zeros: %s %v\n%s left out: %s %v", name, zero, zeroErr, op, omitted, err)
			}
		}
		if made == 0 {
			t.Errorf("%s made no node", name)
		}
	}
}

// attrsOf is the struct of attributes that a constructor takes.
func attrsOf(constructor any) reflect.Type {
	f := reflect.TypeOf(constructor)
	for i := range f.NumIn() {
		if strings.HasSuffix(f.In(i).Name(), "Attrs") {
			return f.In(i)
		}
	}
	return nil
}

// nodeOfZero returns the attributes of the node of an op that a constructor makes, "" where
// it makes none, for operands in their order or with the last one first.
func nodeOfZero(constructor any, op ir.Op, in []*ir.Array) (text string, err error) {
	for turns := range 2 {
		g, failed := ir.Build("g", func(b *ir.Builder) {
			d, _ := ir.Lookup(op)
			values := operands{d.Operands, inputs(b, in)}
			if last := len(in) - 1; turns > 0 && last >= 0 {
				values = operands{nil, append(values.in[last:], values.in[:last]...)}
			}
			callWithZero(constructor, b, values)
		})
		if failed == nil {
			return attrsText(g, op), nil
		}
		var at *ir.OpError
		if errors.As(failed, &at) && at.Op == op && err == nil {
			err = failed
		}
	}
	return "", err
}

func callWithZero(constructor any, b *ir.Builder, in operands) {
	f := reflect.TypeOf(constructor)
	args := []reflect.Value{reflect.ValueOf(b)}
	for i := 1; i < f.NumIn() && !(f.IsVariadic() && i == f.NumIn()-1); i++ {
		arg := reflect.Zero(f.In(i))
		switch {
		case f.In(i) == reflect.TypeFor[ir.Value]():
			arg = reflect.ValueOf(in.next())
		case ofOperands(f.In(i)):
			arg = in.fill(f.In(i))
		case f.In(i) == reflect.TypeFor[[]ir.Value]():
			arg = reflect.ValueOf(in.rest())
		}
		args = append(args, arg)
	}
	reflect.ValueOf(constructor).Call(args)
}

// nodeOfOmitted returns the attributes of the node that a host makes which gives none.
func nodeOfOmitted(d *ir.Def, in []*ir.Array) (string, error) {
	g, err := ir.Build("g", func(b *ir.Builder) {
		values, a := inputs(b, in), d.NewAttrs()
		if c, ok := a.(ir.Defaulter); ok {
			types := make([]ir.Type, len(values))
			for i, v := range values {
				types[i] = v.Type()
			}
			c.Complete(types, func(string) bool { return false })
		}
		b.Add(d.Op, a, values...)
	})
	if err != nil {
		return "", err
	}
	return attrsText(g, d.Op), nil
}

func inputs(b *ir.Builder, in []*ir.Array) (values []ir.Value) {
	for i, a := range in {
		values = append(values, b.Input(fmt.Sprint("x", i), a.Type().DType, a.Type().Shape...))
	}
	return values
}

func attrsText(g *ir.Graph, op ir.Op) string {
	for _, n := range g.Nodes() {
		if n.Op() == op {
			return string(op) + ir.FormatAttrs(n.Attrs())
		}
	}
	return ""
}

// constructorsWithAttrs lists the functions of package ops that take a struct of attributes.
func constructorsWithAttrs(t *testing.T) (names []string) {
	t.Helper()
	sources, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range sources {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range file.Decls {
			f, ok := d.(*ast.FuncDecl)
			if !ok || f.Recv != nil || !f.Name.IsExported() {
				continue
			}
			for _, p := range f.Type.Params.List {
				if id, ok := p.Type.(*ast.Ident); ok && strings.HasSuffix(id.Name, "Attrs") {
					names = append(names, f.Name.Name)
				}
			}
		}
	}
	return names
}

// omission is a case of ir/irtest/cases/defaults.json: the node that an op makes where no
// attribute is given, or words of why none is.
type omission struct {
	Op    ir.Op    `json:"op"`
	In    []string `json:"in"`
	Attrs string   `json:"attrs"`
	Err   bool     `json:"err,omitempty"`
}

const defaultsFile = "../irtest/cases/defaults.json"

// TestDefaultsAreThoseOfTypeScript keeps the file of default attributes,
// by which the tests of TypeScript hold its methods to the same.
func TestDefaultsAreThoseOfTypeScript(t *testing.T) {
	var lines []string
	for _, op := range ir.Ops() {
		d, _ := ir.Lookup(op)
		if d.NewAttrs == nil || d.Subgraphs > 0 || len(d.Samples()) == 0 {
			continue
		}
		c := omission{Op: op, In: []string{}}
		for _, a := range d.Samples()[0].In {
			c.In = append(c.In, a.Type().String())
		}
		text, err := nodeOfOmitted(d, d.Samples()[0].In)
		c.Attrs, c.Err = strings.TrimPrefix(text, string(op)), err != nil
		line, err := json.Marshal(c)
		if err != nil {
			t.Fatal(err)
		}
		lines = append(lines, "  "+string(line))
	}
	want := "[\n" + strings.Join(lines, ",\n") + "\n]\n"
	if *update {
		if err := os.WriteFile(defaultsFile, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(defaultsFile)
	if err != nil || string(got) != want {
		t.Errorf("%s holds other defaults than the ops have (%v): run make golden, and look at the diff", defaultsFile, err)
	}
}
