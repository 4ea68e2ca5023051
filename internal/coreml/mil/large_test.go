package mil

import (
	"encoding/binary"
	"os"
	"path/filepath"
	"testing"
)

// half is a weight of 1 GiB less 64 bytes, which with its record takes 1 GiB.
const half = 1<<30 - blobAlign

// places counts the bytes written, and records the words at some offsets.
type places struct {
	at      uint64
	records map[uint64][]byte
}

func (p *places) Write(data []byte) (int, error) {
	end := p.at + uint64(len(data))
	for at := range p.records {
		if p.at <= at && at+blobAlign <= end {
			p.records[at] = append([]byte(nil), data[at-p.at:at-p.at+blobAlign]...)
		}
	}
	p.at = end
	return len(data), nil
}

// TestWeightsBeyondTwoGigabytes: offsets in the file of weights have 64 bits. What is
// written is counted and not kept; the weights are windows of one memory that nothing is
// written to, but for the byte in which they differ.
func TestWeightsBeyondTwoGigabytes(t *testing.T) {
	memory := make([]byte, half+1)
	memory[half] = 1
	b := newBlobs()
	var offsets []uint64
	for i := range 2 {
		offsets = append(offsets, b.add(&Value{Type: TypeOf(UInt8, half), Data: memory[i : i+half]}))
	}
	small := b.add(Floats(Float32, []float64{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}, 4, 3))
	to := &places{records: map[uint64][]byte{offsets[1]: nil, small: nil}}
	if err := b.write(to); err != nil {
		t.Fatal(err)
	}
	// A header, two weights with a record each, a small one: in closed form.
	if offsets[1] != 64+1<<30 || small != 64+2<<30 || to.at != small+64+64 {
		t.Errorf("weights are at %d and %d of %d bytes", offsets[1], small, to.at)
	}
	for at, record := range to.records {
		if record == nil || binary.LittleEndian.Uint32(record) != blobSentinel || binary.LittleEndian.Uint64(record[16:]) != at+blobAlign {
			t.Errorf("the record at %d is %x", at, record)
		}
	}
}

// TestReadingBeyondTwoGigabytes reads the description of a package and a weight at 4 GiB in a
// sparse file.
func TestReadingBeyondTwoGigabytes(t *testing.T) {
	const at = 64 + 4<<30
	b := NewBuilder("main", CoreML8)
	b.Reserve("y")
	numbers := Floats(Float32, []float64{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}, 4, 3)
	b.Output("y", b.Op("matmul", Args{"x": b.Input("x", TypeOf(Float32, 2, 4)), "y": numbers, "transpose_x": false, "transpose_y": false}))
	f, err := b.Function()
	if err != nil {
		t.Fatal(err)
	}
	weights := newBlobs()
	weights.end = at
	p := &Package{Program: Program{Opset: CoreML8, Functions: []*Function{f}}}
	dir := t.TempDir()
	model := (&encoder{weights}).model(p)
	if err := writeParts(dir, model, newBlobs()); err != nil {
		t.Fatal(err)
	}
	file, err := os.Create(filepath.Join(dir, dataFolder, author, weightsFolder, weightsFile))
	if err != nil {
		t.Fatal(err)
	}
	for place, data := range map[int64][]byte{at: blobRecord(numbers, at), at + blobAlign: numbers.Data} {
		if _, err := file.WriteAt(data, place); err != nil {
			t.Fatal(err)
		}
	}
	if err := file.Close(); err != nil {
		t.Fatal(err)
	}
	described, err := Describe(dir)
	if err != nil {
		t.Fatal(err)
	}
	if err := described.Write(filepath.Join(t.TempDir(), "again.mlpackage")); err == nil {
		t.Error("a package without its weights was written")
	}
	whole, err := Read(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, op := range whole.Program.Functions[0].Ops {
		if op.Value != nil && op.Value.Type.Equal(numbers.Type) && op.Value.Number(11) != 12 {
			t.Errorf("the last weight is %g", op.Value.Number(11))
		}
	}
}
