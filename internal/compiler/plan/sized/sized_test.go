package sized_test

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"flag"
	"hash/crc32"
	"os"
	"testing"

	"github.com/rlx-go/rlx/internal/codegen/wasmsimd"
	"github.com/rlx-go/rlx/internal/codegen/wgsl"
	"github.com/rlx-go/rlx/internal/compiler/plan"
	"github.com/rlx-go/rlx/internal/compiler/plan/sized"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/ops"
)

var update = flag.Bool("update", false, "write the files in testdata")

// shared is testdata/open.json, which this package and js/test/sized.test.mjs read: a file with open sizes
// as bytes, which all later readers read, and changes of it with the rules that they break.
type shared struct {
	File  []byte       `json:"file"`
	Cases []sharedCase `json:"cases"`
}

// sharedCase replaces the only place of bytes in the file, whose length and checksum are then right.
type sharedCase struct {
	What     string `json:"what"`
	Old, New []byte
	Rule     int `json:"rule"`
}

const sharedFile = "testdata/open.json"

// rows is the softmax of products over an open axis; calls are counted in a state.
func rows(t *testing.T) *ir.Module {
	t.Helper()
	g, err := ir.Build("rows", func(b *ir.Builder) {
		x, w := b.Input("x", ir.F32, ir.Sym("batch"), ir.Sym("seq"), ir.N(4)), b.Param("w", ir.F32, ir.N(4))
		b.Output("y", ops.Softmax(b, ops.ReduceSum(b, ops.Mul(b, x, ops.BroadcastTo(b, w, x.Shape())), 2), 1))
		b.SetState("calls", ops.Add(b, b.State("calls", ir.I32), ops.Const(b, ir.I32, 1)))
	})
	if err != nil {
		t.Fatal(err)
	}
	double, err := ir.Build("double", func(b *ir.Builder) {
		w := b.Param("w", ir.F32, ir.N(4))
		b.Output("w2", ops.Add(b, w, w))
	})
	if err != nil {
		t.Fatal(err)
	}
	m, err := ir.NewModule("rows", ir.Entry{Name: "run", Graph: g}, ir.Entry{Name: "double", Graph: double})
	if err != nil {
		t.Fatal(err)
	}
	return m
}

var targets = []sized.Target{
	{Target: plan.WebGPU(), Printer: wgsl.Printer{}},
	{Target: plan.WebAssembly(false), Printer: wasmsimd.Printer{}},
}

func compileRows(t *testing.T) *plan.Open {
	t.Helper()
	o, err := sized.Compile(rows(t), sized.Options{Sizes: map[string][]int{"batch": {2, 4}, "seq": {3}}, Targets: targets})
	if err != nil {
		t.Fatal(err)
	}
	return o
}

// word is a number of a file.
func word(n ...uint32) (b []byte) {
	for _, v := range n {
		b = binary.LittleEndian.AppendUint32(b, v)
	}
	return b
}

// text is a string of a file.
func text(s string) []byte {
	b := append(word(uint32(len(s))), s...)
	return append(b, make([]byte, -len(s)&3)...)
}

// hostile are changes of the file of compileRows.
func hostile() []sharedCase {
	cat := func(parts ...[]byte) []byte { return bytes.Join(parts, nil) }
	symbols := cat(word(2), text("batch"), text("seq"), word(2, 0, 0))
	dims := cat(word(3), text("batch"), text("seq"), text("4"))
	return []sharedCase{
		{"nothing", nil, nil, 0},
		{"an unknown section", []byte("BASE\x01\x00\x00\x00"), []byte("BASS\x01\x00\x00\x00"), 8},
		{"the first section twice", []byte("BASE\x01\x00\x00\x00"), []byte("OPEN\x01\x00\x00\x00"), 7},
		{"symbols out of order", symbols, cat(word(2), text("seq"), text("batch"), word(2, 0, 0)), 46},
		{"another truth value", symbols, cat(word(2), text("batch"), text("seq"), word(2, 0, 2)), 6},
		{"a symbol that no axis has", symbols, cat(word(2), text("batch"), text("sep"), word(2, 0, 0)), 46},
		{"a size that is no polynomial", dims, cat(word(3), text("batch"), text("s(q"), text("4")), 46},
		{"a size with an unknown symbol", dims, cat(word(3), text("batch"), text("seq"), text("n")), 46},
		{"another size", dims, cat(word(3), text("batch"), text("seq"), text("5")), 47},
		{"a name that the base has", cat(text("run"), word(1, 2)), cat(text("doub"), word(1, 2)), 47},
		{"an entry that does not exist", cat(word(0, 2, 4, 0, 3, 0)), cat(word(1, 2, 4, 0, 3, 0)), 47},
		{"sizes that the plan does not have", cat(word(0, 2, 4, 0, 3, 0)), cat(word(0, 2, 4, 0, 9, 0)), 47},
		{"the sizes of another bucket", cat(word(0, 2, 4, 0, 3, 0)), cat(word(0, 2, 2, 0, 3, 0)), 47},
	}
}

// file returns the file of a case, sealed.
func (c *sharedCase) file(t *testing.T, file []byte) []byte {
	t.Helper()
	if c.Old != nil && bytes.Count(file, c.Old) < 1 {
		t.Fatalf("%s: the file does not have the bytes", c.What)
	}
	return seal(bytes.Replace(bytes.Clone(file), c.Old, c.New, 1))
}

func seal(b []byte) []byte {
	binary.LittleEndian.PutUint32(b[8:], uint32(len(b)))
	binary.LittleEndian.PutUint32(b[12:], crc32.ChecksumIEEE(b[16:]))
	return b
}

func TestHostileFiles(t *testing.T) {
	if *update {
		file, err := plan.EncodeOpen(compileRows(t))
		if err != nil {
			t.Fatal(err)
		}
		data, err := json.Marshal(shared{file, hostile()})
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(sharedFile, append(data, '\n'), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	data, err := os.ReadFile(sharedFile)
	if err != nil {
		t.Fatal(err)
	}
	var all shared
	if err := json.Unmarshal(data, &all); err != nil {
		t.Fatal(err)
	}
	for _, c := range all.Cases {
		_, err := plan.DecodeOpen(c.file(t, all.File))
		var format *plan.FormatError
		if c.Rule == 0 && err != nil || c.Rule != 0 && (!errors.As(err, &format) || format.Rule != c.Rule) {
			t.Errorf("%s: %v, want rule %d", c.What, err, c.Rule)
		}
	}
	if _, err := plan.Decode(all.File); !errors.Is(err, plan.ErrVersion) {
		t.Errorf("as a plan of one size: %v", err)
	}
	for at := 16; at < len(all.File); at += 53 { // never a panic
		b := bytes.Clone(all.File)
		b[at] ^= 0x81
		if _, err := plan.DecodeOpen(b); err == nil {
			t.Errorf("byte %d is changed, and the file accepted", at)
		}
		_, _ = plan.DecodeOpen(seal(b))
		if _, err := plan.DecodeOpen(seal(bytes.Clone(all.File[:at]))); err == nil {
			t.Errorf("%d bytes are accepted", at)
		}
	}
}

// TestOtherStates refuses buckets whose parameters lie elsewhere than those of the base.
func TestOtherStates(t *testing.T) {
	o := compileRows(t)
	p := o.Buckets[1].Plan.Variants[0]
	for i := range p.Slots {
		if p.Slots[i].Name == "calls" {
			p.Slots[i].Name = "calls2"
		}
	}
	_, err := plan.EncodeOpen(o)
	if format := (*plan.FormatError)(nil); !errors.As(err, &format) || format.Rule != 48 {
		t.Errorf("got %v, want rule 48", err)
	}
}

// TestRoundTrip reads the sizes and the description of what was written.
func TestRoundTrip(t *testing.T) {
	o := compileRows(t)
	file, err := plan.EncodeOpen(o)
	if err != nil {
		t.Fatal(err)
	}
	got, err := plan.DecodeOpen(file)
	if err != nil {
		t.Fatal(err)
	}
	again, err := plan.EncodeOpen(got)
	if err != nil || !bytes.Equal(again, file) {
		t.Errorf("the file is not what is read from it: %v", err)
	}
	for _, c := range []struct{ batch, seq, bucket int }{{1, 1, 0}, {2, 3, 0}, {3, 2, 1}, {5, 1, -1}, {1, 4, -1}, {0, 1, -1}} {
		if at := got.Choose(0, map[string]int{"batch": c.batch, "seq": c.seq}); at != c.bucket {
			t.Errorf("%d by %d is computed by bucket %d, want %d", c.batch, c.seq, at, c.bucket)
		}
	}
}

// TestCompileRefuses names the symbol that has no sizes.
func TestCompileRefuses(t *testing.T) {
	_, err := sized.Compile(rows(t), sized.Options{Sizes: map[string][]int{"seq": {3}}, Targets: targets})
	if !errors.Is(err, ir.ErrSymbol) {
		t.Errorf("without sizes of batch: %v", err)
	}
	many := make([]int, 40)
	for i := range many {
		many[i] = i + 1
	}
	_, err = sized.Compile(rows(t), sized.Options{Sizes: map[string][]int{"seq": many, "batch": many}, Targets: targets})
	if !errors.Is(err, ir.ErrAttr) {
		t.Errorf("1600 combinations: %v", err)
	}
}
