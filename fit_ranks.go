package rlx

import (
	"context"
	"encoding/binary"
	"fmt"
	"maps"
	"math"
	"slices"

	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/native/collective"
	"github.com/rlx-go/rlx/native/safetensors"
)

// isAlone reports whether no other rank trains the same model.
func (t *Trainer) isAlone() bool { return t.layout().ranks() == 1 }

// saveWholeFile writes the whole values of parameters and states to a file, with metadata, which
// [Trainer.loadWholeFile] reads.
func saveWholeFile(name string, values map[string]Tensor, metadata map[string]string) error {
	if err := safetensors.WriteFile(name, values, withChecksum(values, metadata)); err != nil {
		return fmt.Errorf("save %s: %w", name, err)
	}
	return nil
}

// loadWholeFile loads a file and returns its metadata.
func (t *Trainer) loadWholeFile(ctx context.Context, name string) (map[string]string, error) {
	values, metadata, err := checked(safetensors.ReadFile(name))
	if err == nil {
		err = t.LoadWhole(ctx, values)
	}
	if err != nil {
		return nil, fmt.Errorf("load %s: %w", name, err)
	}
	return metadata, nil
}

// ofFirstRank returns the number that rank 0 gives.
func (t *Trainer) ofFirstRank(ctx context.Context, n int) (int, error) {
	if t.isAlone() {
		return n, nil
	}
	own, first := binary.LittleEndian.AppendUint64(nil, uint64(n)), make([]byte, 8)
	err := t.mesh.World().Broadcast(ctx, ir.I64, 0, own, first)
	return int(int64(binary.LittleEndian.Uint64(first))), err
}

// overRanks adds up a number of each rank, which it returns, and sums of the same names on all.
func (t *Trainer) overRanks(ctx context.Context, sums map[string]float64, total float64) (float64, error) {
	names, all := slices.Sorted(maps.Keys(sums)), []float64{total}
	for _, name := range names {
		all = append(all, sums[name])
	}
	if err := t.addRanks(ctx, all); err != nil {
		return total, err
	}
	for i, name := range names {
		sums[name] = all[i+1]
	}
	return all[0], nil
}

// addRanks adds the elements of the other ranks to those of this one, in place.
func (t *Trainer) addRanks(ctx context.Context, x []float64) error {
	if t.isAlone() {
		return nil
	}
	var own []byte
	for _, v := range x {
		own = binary.LittleEndian.AppendUint64(own, math.Float64bits(v))
	}
	all := make([]byte, len(own))
	if err := t.mesh.World().AllReduce(ctx, ir.F64, collective.Sum, own, all); err != nil {
		return fmt.Errorf("sums over ranks: %w", err)
	}
	for i := range x {
		x[i] = math.Float64frombits(binary.LittleEndian.Uint64(all[8*i:]))
	}
	return nil
}
