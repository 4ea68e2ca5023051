package rlx_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"os"
	"path/filepath"
	"testing"

	"github.com/rlx-go/rlx"
	"github.com/rlx-go/rlx/native/safetensors"
)

// TestCheckpointsOfChangedBits flips bits of a checkpoint: one that is loaded nevertheless has all values as they were.
// A bit of the header may make it a file without a checksum.
func TestCheckpointsOfChangedBits(t *testing.T) {
	trainer := pointsTrainer(t, 0.05)
	if _, err := rlx.Fit(ctx, trainer, rlx.Loop{Data: rlx.Shuffled(points(), 4, 1), Steps: 3}); err != nil {
		t.Fatal(err)
	}
	name := filepath.Join(t.TempDir(), "checkpoint.safetensors")
	if err := trainer.SaveFile(ctx, name); err != nil {
		t.Fatal(err)
	}
	file, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	contents := func() []byte {
		values, err := trainer.Program().Save(ctx)
		if err != nil {
			t.Fatal(err)
		}
		var b bytes.Buffer
		if err := safetensors.Write(&b, values, nil); err != nil {
			t.Fatal(err)
		}
		return b.Bytes()
	}
	want := contents()
	begin := 8 + int(binary.LittleEndian.Uint64(file)) // of the elements, of which a part of the bits will do
	for bit := 0; bit < 8*len(file); bit++ {
		if bit > 8*begin {
			bit = min(bit+12, 8*len(file)-1)
		}
		changed := bytes.Clone(file)
		changed[bit/8] ^= 1 << (bit % 8)
		err := trainer.Load(ctx, bytes.NewReader(changed))
		if err != nil && !errors.Is(err, safetensors.ErrDamaged) && !errors.Is(err, rlx.ErrCheckpoint) {
			t.Fatalf("bit %d: the error is %v, want one of kind ErrDamaged or ErrCheckpoint", bit, err)
		}
		if !bytes.Equal(contents(), want) {
			t.Fatalf("bit %d: the checkpoint is loaded with other values, error %v", bit, err)
		}
	}
}

// TestChecksumOfCheckpoints computes the checksum as it is defined, which is that of the npm package, too.
func TestChecksumOfCheckpoints(t *testing.T) {
	var file bytes.Buffer
	if err := pointsTrainer(t, 0.05).Save(ctx, &file); err != nil {
		t.Fatal(err)
	}
	values, metadata, err := safetensors.Read(&file)
	if err != nil {
		t.Fatal(err)
	}
	var want uint32
	for name, x := range values {
		want ^= crc32.Checksum(append([]byte(name+"\x00"), x.Data...), crc32.MakeTable(crc32.Castagnoli))
	}
	if got := metadata["rlx.crc32c"]; got != fmt.Sprintf("%08x", want) || len(values) < 4 {
		t.Errorf("the checksum is %s, want %08x", got, want)
	}
}

// TestCheckpointsWithoutChecksum: those of earlier versions have none.
func TestCheckpointsWithoutChecksum(t *testing.T) {
	trainer := pointsTrainer(t, 0.05)
	values, err := trainer.Program().Save(ctx)
	if err != nil {
		t.Fatal(err)
	}
	var file bytes.Buffer
	if err := safetensors.Write(&file, values, map[string]string{"format": "pt"}); err != nil {
		t.Fatal(err)
	}
	if err := trainer.Load(ctx, &file); err != nil {
		t.Error(err)
	}
}
