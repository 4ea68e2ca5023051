package ir

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"os"
	"strings"
	"testing"
)

func TestTextFormIsAsDocumented(t *testing.T) {
	want, err := os.ReadFile("testdata/everything.txt")
	if err != nil {
		t.Fatal(err)
	}
	if got := everything(t).String(); got != string(want) {
		t.Errorf("the text form has changed, it is now\n%s", got)
	}
}

func TestParseIsTheInverseOfString(t *testing.T) {
	g := everything(t)
	again, err := Parse(g.String())
	if err != nil {
		t.Fatal(err)
	}
	if again.String() != g.String() {
		t.Errorf("printed again:\n%s\nwant\n%s", again, g)
	}
	if again.Hash() != g.Hash() {
		t.Error("the hash differs")
	}
	if err := Verify(again); err != nil {
		t.Error(err)
	}
	for _, n := range again.Nodes() {
		if n.Pos() != (Pos{}) {
			t.Errorf("%s has place %s", n.Op(), n.Pos())
		}
	}
}

// Texts that were written before an op got an option stay readable.
func TestTextFormMayOmitTrueAttributes(t *testing.T) {
	const text = `graph "g" {
  %0 = input "x" : f32[]
  %1 = test.attrs(%0) {i=-3 l=[1,-2] f=0.1 b=false s="a" d=bf16 n=[2]} : f32[]
  output "y" = %1
}
`
	g, err := Parse(strings.Replace(text, "b=false ", "", 1))
	if err != nil {
		t.Fatal(err)
	}
	if got := g.String(); got != text {
		t.Errorf("read as\n%s\nnot\n%s", got, text)
	}
	if _, err := Parse(strings.Replace(text, "b=false", "c=false", 1)); !errors.Is(err, ErrSyntax) {
		t.Errorf("an unknown attribute: error %v, want one of kind %q", err, ErrSyntax)
	}
}

func TestLiteralsKeepEveryBit(t *testing.T) {
	word := func(x ...uint32) []byte {
		var out []byte
		for _, w := range x {
			out = binary.LittleEndian.AppendUint32(out, w)
		}
		return out
	}
	long := make([]byte, 0, 400)
	for i := range 100 {
		long = append(long, word(uint32(i))...)
	}
	tests := []struct {
		name string
		t    Type
		data []byte
		text string // "": not looked at
	}{
		{"number", TypeOf(F32), word(math.Float32bits(2.5)), "2.5"},
		{"shortest digits", TypeOf(F32), word(math.Float32bits(0.1)), "0.1"},
		{"negative zero", TypeOf(F32), word(1 << 31), "-0"},
		{"subnormal", TypeOf(F32), word(1), "1e-45"},
		{"infinity", TypeOf(F32), word(0xff800000), "-inf"},
		{"quiet nan", TypeOf(F32), word(0x7fc00000), "nan"},
		{"nan with payload", TypeOf(F32), word(0x7fc00001), "0x0100c07f"},
		{"signalling nan", TypeOf(F32), word(0x7f800001), "0x0100807f"},
		{"negative nan everywhere", TypeOf(F32, N(1000)), bytes.Repeat(word(0xffc00000), 1000), "0x0000c0ff"},
		{"equal elements", TypeOf(F32, N(1000)), bytes.Repeat(word(0x3f800000), 1000), "1"},
		{"list", TypeOf(I32, N(3)), word(1, 0xffffffff, 3), "[1, -1, 3]"},
		{"list with a special nan", TypeOf(F32, N(2)), word(0x7fc00001, 0), "0x0100c07f00000000"},
		{"long list", TypeOf(I32, N(100)), long, ""},
		{"no elements", TypeOf(F32, N(0)), nil, "[]"},
		{"bool", TypeOf(Bool, N(2)), []byte{0, 1}, "[false, true]"},
		{"other true", TypeOf(Bool), []byte{7}, "true"},
		{"u64", TypeOf(U64), bytes.Repeat([]byte{255}, 8), "18446744073709551615"},
		{"i8", TypeOf(I8), []byte{0x80}, "-128"},
		{"f16", TypeOf(F16), []byte{0x66, 0x2e}, "0.099975586"},
		{"bf16 largest", TypeOf(BF16), []byte{0x7f, 0x7f}, ""},
		{"f16 nan with payload", TypeOf(F16), []byte{0x01, 0x7c}, "0x017c"},
		{"f64", TypeOf(F64), binary.LittleEndian.AppendUint64(nil, math.Float64bits(0.1)), "0.1"},
		{"complex", TypeOf(C64), word(1, 2), "0x0100000002000000"},
		{"equal complex", TypeOf(C64, N(2)), word(1, 2, 1, 2), "0x0100000002000000"},
		{"wide complex", TypeOf(C128, N(2)), append(make([]byte, 31), 1), "0x" + strings.Repeat("0", 62) + "01"},
		{"splats within the limit", TypeOf(F32, N(maxSplat/4)), make([]byte, maxSplat), "0"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			g := build(t, func(b *Builder) { b.Output("c", b.Constant(tt.t, tt.data)) })
			text := g.String()
			if tt.text != "" && !strings.Contains(text, "constant "+tt.text+" : ") {
				t.Errorf("printed as %s, want %s", shorten(text), tt.text)
			}
			again, err := Parse(text)
			if err != nil {
				t.Fatal(err)
			}
			got, want := again.Nodes()[0].Attrs().(*ConstantAttrs), g.Nodes()[0].Attrs().(*ConstantAttrs)
			if !bytes.Equal(got.Data, want.Data) || !got.Type.Equal(want.Type) {
				t.Errorf("read back as % x of %s", got.Data, got.Type)
			}
		})
	}
}

func TestSplatsBeyondTheLimitArePrintedInFull(t *testing.T) {
	half := TypeOf(U8, N(maxSplat*2/3))
	g := build(t, func(b *Builder) {
		b.Output("a", b.Constant(half, make([]byte, maxSplat*2/3)))
		b.Output("b", b.Constant(half, make([]byte, maxSplat*2/3)))
		b.Output("c", b.Constant(TypeOf(U8, N(100)), make([]byte, 100)))
	})
	text := g.String()
	if strings.Count(text, "constant 0 :") != 2 || len(text) < 2*maxSplat*2/3 {
		t.Error("the second literal should be written in full and the third be short again")
	}
	again, err := Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	if again.Hash() != g.Hash() {
		t.Error("the graph differs")
	}
}

func TestParseRefuses(t *testing.T) {
	graph := func(lines string) string { return "graph \"g\" {\n" + lines + "\n}" }
	nested := strings.Repeat("graph \"g\" { %0 = test.call() : f32[] ", maxNesting+2)
	tests := []struct {
		name, text string
		line, col  int
		kind       error
		msg        string
	}{
		{"value without a name", graph("% = input \"x\" : f32[]"), 2, 1, ErrSyntax, "a value like %0"},
		{"string without an end", "graph \"g {}", 1, 7, ErrSyntax, "quoted string"},
		{"list without an end", graph("%0 = constant [1, 2 : f32[2]"), 3, 1, ErrSyntax, `":" expected`},
		{"bad element", graph("%0 = constant [1, two] : f32[2]"), 2, 15, ErrSyntax, `"two" is not an element of f32`},
		{"element of a type without decimal form", graph("%0 = constant [1] : c64[1]"), 2, 15, ErrSyntax, `"1" is not an element of c64`},
		{"bad bytes", graph("%0 = constant 0x123 : u8[2]"), 2, 15, ErrSyntax, "is not a literal"},
		{"nothing", "", 1, 1, ErrSyntax, `"graph" expected`},
		{"no end", "graph \"g\" {", 1, 12, ErrSyntax, "a node, an output or a state expected"},
		{"more after the end", "graph \"g\" {} x", 1, 14, ErrSyntax, "text follows the graph"},
		{"unquoted name", "graph g {}", 1, 7, ErrSyntax, "quoted string"},
		{"raw string", "graph `g` {}", 1, 7, ErrSyntax, "quoted string"},
		{"unknown op", graph("%0 = nope()"), 2, 6, ErrSyntax, `unknown op "nope"`},
		{"port as an op", graph("%0 = port() : f32[]"), 2, 6, ErrSyntax, `unknown op "port"`},
		{"unknown type", graph(`%0 = input "x" : f31[]`), 2, 18, ErrSyntax, `unknown element type "f31"`},
		{"bad size", graph(`%0 = input "x" : f32[2,n**2]`), 2, 24, ErrSyntax, `"n**2" is not a size`},
		{"sizes too large", graph(`%0 = input "x" : f32[` + N(maxDim).String() + `,2]`), 2, 18, ErrShape, "too many elements"},
		{"undefined value", graph("%0 = test.add(%1, %1) : f32[]"), 2, 15, ErrSyntax, "%1 is not defined"},
		{"value twice", graph("%0 = input \"x\" : f32[]\n%0 = input \"y\" : f32[]"), 3, 1, ErrSyntax, "%0 is defined twice"},
		{"port twice", graph("%0 = input \"x\" : f32[]\n%1 = input \"x\" : f32[]"), 3, 1, ErrName, "declared twice"},
		{"wrong type", graph("%0 = input \"x\" : f32[]\n%1 = test.add(%0, %0) : f32[1]"), 3, 25, ErrSyntax, "test.add has type f32[]"},
		{"too few results", graph("%0 = input \"x\" : f32[]\n%1 = test.split(%0) : (f32[], i32[])"), 3, 1, ErrSyntax, "1 names given for 2 results"},
		{"refused by the op", graph("%0 = input \"x\" : f32[2]\n%1 = input \"y\" : f32[3]\n%2 = test.add(%0, %1) : f32[2]"), 4, 1, ErrShape, "f32[2] and f32[3]"},
		{"attribute missing", graph("%0 = test.shape() : f32[]"), 2, 19, ErrSyntax, `"{" expected`},
		{"attribute misnamed", graph("%0 = test.shape() {shap=[]} : f32[]"), 2, 20, ErrSyntax, "attribute shape expected"},
		{"state without update", graph(`%0 = state "x" : f32[]`), 1, 1, ErrGraph, "no new value"},
		{"update without state", graph("%0 = input \"x\" : f32[]\nstate \"x\" = %0"), 3, 1, ErrName, "unknown state"},
		{"state in a subgraph", graph("%0 = test.call() : f32[]\ngraph \"s\" {\n%0 = param \"x\" : f32[]\noutput \"y\" = %0 }"), 2, 1, ErrGraph, "persistent"},
		{"literal of another type", graph("%0 = constant true : f32[]"), 2, 15, ErrSyntax, `"true" is not a literal of f32`},
		{"literal out of range", graph("%0 = constant 256 : u8[]"), 2, 15, ErrSyntax, "is not a literal"},
		{"float out of range", graph("%0 = constant 1e39 : f32[]"), 2, 15, ErrSyntax, "is not a literal"},
		{"f16 out of range", graph("%0 = constant 70000 : f16[]"), 2, 15, ErrSyntax, "is not a literal"},
		{"too few elements", graph("%0 = constant [1, 2] : f32[3]"), 2, 15, ErrShape, "the constant has 8 bytes; f32[3] needs 12"},
		{"too large a splat", graph("%0 = constant 1 : f32[100000000]"), 2, 15, ErrSyntax, "more than 1048576 bytes"},
		{"too large splats together", graph("%0 = constant 1 : f32[200000]\n%1 = constant 1 : f32[200000]"), 3, 15, ErrSyntax, "more than"},
		{"literal of symbolic size", graph("%0 = constant 1 : f32[n]"), 2, 15, ErrShape, "symbolic"},
		{"literal without elements of symbolic size", graph("%0 = constant [] : f32[n,0]"), 2, 15, ErrShape, "symbolic"},
		{"nested too deep", nested, 1, 0, ErrSyntax, "nested deeper"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, err := Parse(tt.text)
			var s *SyntaxError
			if !errors.As(err, &s) || !errors.Is(err, tt.kind) {
				t.Fatalf("got %v, want a SyntaxError of kind %v", err, tt.kind)
			}
			if s.Line != tt.line || tt.col != 0 && s.Col != tt.col || !strings.Contains(s.Msg, tt.msg) {
				t.Errorf("got %v, want %d:%d: …%s…", err, tt.line, tt.col, tt.msg)
			}
			if want := fmt.Sprintf("%d:%d: %s", s.Line, s.Col, s.Msg); err.Error() != want {
				t.Errorf("printed as %q, want %q", err, want)
			}
		})
	}
}

func TestParseIsFreeInSpaceNamesAndComments(t *testing.T) {
	g, err := Parse("// a comment\ngraph \"g\"{%x=input\"x\":f32[ 2 , 1*n ] // no\n%y_1=test.add( %x,%x ):f32[2,n]output\"y\"=%y_1}//")
	if err != nil {
		t.Fatal(err)
	}
	want := "graph \"g\" {\n  %0 = input \"x\" : f32[2,n]\n  %1 = test.add(%0, %0) : f32[2,n]\n  output \"y\" = %1\n}\n"
	if g.String() != want {
		t.Errorf("got %s", g)
	}
}

// Time and memory must stay in proportion to the text.
func TestParseOfManyNodesIsFast(t *testing.T) {
	var sb strings.Builder
	sb.WriteString("graph \"g\" {\n")
	for i := range 50_000 {
		fmt.Fprintf(&sb, "%%%d = input \"x%d\" : f32[]\noutput \"x%d\" = %%%d\n", i, i, i, i)
	}
	sb.WriteString("}\n")
	g, err := Parse(sb.String())
	if err != nil {
		t.Fatal(err)
	}
	if len(g.Nodes()) != 50_000 {
		t.Errorf("%d nodes", len(g.Nodes()))
	}
}

func FuzzLiteral(f *testing.F) {
	f.Add(uint8(F32), []byte{0, 0, 0xc0, 0x7f})
	f.Add(uint8(C64), []byte{1, 0, 0, 0, 0, 0, 0, 0})
	f.Add(uint8(Bool), []byte{2, 1})
	f.Fuzz(func(t *testing.T, d uint8, data []byte) {
		dt := DType(d)
		size := dt.Size()
		if !dt.Valid() || size == 0 {
			return
		}
		data = data[:len(data)/size*size]
		g := build(t, func(b *Builder) { b.Output("c", b.Constant(TypeOf(dt, N(len(data)/size)), data)) })
		again, err := Parse(g.String())
		if err != nil {
			t.Fatal(err)
		}
		if again.Hash() != g.Hash() {
			t.Errorf("read back differently: %s", g)
		}
	})
}
