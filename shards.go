package rlx

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"github.com/rlx-go/rlx/autodiff/parallel"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/native"
	"github.com/rlx-go/rlx/native/collective"
	"github.com/rlx-go/rlx/native/safetensors"
)

// Whole returns the whole values of all parameters and states on each rank, if they are divided
// among ranks ([DataParallel.Shard]). All ranks call it. One rank can write them by
// [safetensors.WriteFile], and [Trainer.LoadFile] can read the file in a run of one rank. An error
// of the group is an [*collective.Error].
func (t *Trainer) Whole(ctx context.Context) (map[string]Tensor, error) {
	if err := trainerGiven(ctx, t, "whole"); err != nil {
		return nil, err
	}
	values, err := t.values(ctx)
	if err != nil {
		return nil, err
	}
	for _, name := range slices.Sorted(maps.Keys(t.placements)) {
		x, ok := values[name]
		if !ok {
			continue
		}
		if values[name], err = gathered(ctx, t.mesh, t.placements[name], x); err != nil {
			return nil, fmt.Errorf("gathering %q: %w", name, err)
		}
	}
	return values, t.checkValues(values)
}

// LoadWhole resumes from whole values, as [Trainer.Whole] returns them: each rank takes its parts.
// The errors are those of [Trainer.Load].
func (t *Trainer) LoadWhole(ctx context.Context, values map[string]Tensor) error {
	if err := trainerGiven(ctx, t, "load"); err != nil {
		return err
	}
	own := maps.Clone(values)
	for name, x := range own {
		part, err := t.Part(name, x)
		if err != nil {
			return &CheckpointError{Err: err}
		}
		own[name] = part
	}
	return t.load(ctx, own)
}

// rank is the number of this process in the training.
func (t *Trainer) rank() int {
	if t.mesh == nil {
		return 0
	}
	return t.mesh.World().Rank()
}

// layout is the mesh of the training ranks.
func (t *Trainer) layout() meshLayout {
	if t.mesh == nil {
		return nil
	}
	return t.mesh.Axes()
}

// meshLayout are the axes of a mesh, the last one fastest.
type meshLayout []collective.Axis

func (m meshLayout) ranks() int {
	n := 1
	for _, a := range m {
		n *= a.Size
	}
	return n
}

// coordinate is the position of a rank along an axis of some size.
type coordinate struct{ at, size int }

// at returns the position of a rank along each axis.
func (m meshLayout) at(rank int) map[string]coordinate {
	out := map[string]coordinate{}
	for _, a := range slices.Backward(m) {
		out[a.Name] = coordinate{rank % a.Size, a.Size}
		rank /= a.Size
	}
	return out
}

// writes reports whether a rank is the first of those with the same part.
func (m meshLayout) writes(placement parallel.Placement, rank int) bool {
	for axis, c := range m.at(rank) {
		if c.at > 0 && axis != placement.Flat && !slices.Contains(placement.Axes, axis) {
			return false
		}
	}
	return true
}

// boxOf returns the start and size of a rank's part in the whole; with a flat placement the whole
// is a vector.
func boxOf(placement parallel.Placement, at map[string]coordinate) (start, size []int) {
	shape, _ := placement.Type.Shape.Ints()
	if placement.Flat != "" {
		elements, c := 1, at[placement.Flat]
		for _, n := range shape {
			elements *= n
		}
		part := (elements + c.size - 1) / c.size
		return []int{min(c.at*part, elements)}, []int{max(0, min(part, elements-c.at*part))}
	}
	start, size = make([]int, len(shape)), slices.Clone(shape)
	for i, axis := range placement.Axes {
		if c := at[axis]; axis != "" {
			size[i] /= c.size
			start[i] = c.at * size[i]
		}
	}
	return start, size
}

// partOf returns the part of a rank of a whole value.
func partOf(placement parallel.Placement, whole Tensor, at map[string]coordinate) Tensor {
	start, size := boxOf(placement, at)
	dims := size
	if placement.Flat != "" {
		part, _ := boxOf(placement, map[string]coordinate{placement.Flat: {0, at[placement.Flat].size}})
		_, dims = boxOf(placement, map[string]coordinate{placement.Flat: {part[0], at[placement.Flat].size}})
		whole.Dims = []int{whole.Len()}
	}
	part := native.Zeros(whole.DType, dims...)
	view := part
	view.Dims = size // without the padding at the end
	copyPart(view, whole, start, false)
	return part
}

// fill copies the part of a rank into the whole.
func fill(placement parallel.Placement, whole, part Tensor, at map[string]coordinate) {
	start, size := boxOf(placement, at)
	if placement.Flat != "" {
		whole.Dims = []int{whole.Len()}
	}
	part.Dims = size
	copyPart(part, whole, start, true)
}

// copyPart copies the box of whole that begins at start and has the size of part, to part or from it.
func copyPart(part, whole Tensor, start []int, from bool) {
	if part.Len() == 0 {
		return
	}
	item, offset := part.DType.Size(), 0
	for i, at := range start {
		offset = offset*whole.Dims[i] + at
	}
	box := whole.Data[offset*item:]
	if from {
		copyBox(box, part.Data, part.Dims, whole.Dims, part.Dims, item)
		return
	}
	copyBox(part.Data, box, part.Dims, part.Dims, whole.Dims, item)
}

// gathered returns the whole of a value that is divided among the ranks.
func gathered(ctx context.Context, mesh *collective.Mesh, placement parallel.Placement, x Tensor) (Tensor, error) {
	along := func(axis string, step parallel.Placement, x Tensor) (Tensor, error) {
		group := mesh.Along(axis)
		all := native.Zeros(x.DType, append([]int{group.Size()}, x.Dims...)...)
		if err := group.AllGather(ctx, x.DType, x.Data, all.Data); err != nil {
			return Tensor{}, err
		}
		shape, _ := step.Type.Shape.Ints()
		whole := native.Zeros(x.DType, shape...)
		for i := range group.Size() {
			part := x
			part.Data = all.Data[i*len(x.Data):][:len(x.Data)]
			fill(step, whole, part, map[string]coordinate{axis: {i, group.Size()}})
		}
		return whole, nil
	}
	if placement.Flat != "" {
		return along(placement.Flat, placement, x)
	}
	for dim, axis := range placement.Axes {
		if axis == "" {
			continue
		}
		shape := ir.Dims(x.Dims...)
		shape[dim] = placement.Type.Shape[dim]
		axes := make([]string, len(shape))
		axes[dim] = axis
		var err error
		if x, err = along(axis, parallel.Placement{Type: ir.Type{DType: x.DType, Shape: shape}, Axes: axes}, x); err != nil {
			return Tensor{}, err
		}
	}
	return x, nil
}

// shardKey is the key of the metadata of a file of [Trainer.SaveShards].
const shardKey = "rlx.shard"

// shardHeader describes the parts in a file of [Trainer.SaveShards].
type shardHeader struct {
	Mesh       meshLayout             `json:"mesh"`
	Rank       int                    `json:"rank"`
	Steps      int                    `json:"steps"`
	Placements map[string]shardedType `json:"places"`
}

// shardedType is a [parallel.Placement] in a file.
type shardedType struct {
	Shape []int    `json:"shape"`
	Axes  []string `json:"axes,omitempty"`
	Flat  string   `json:"flat,omitempty"`
}

func shardName(dir string, rank, ranks int) string {
	return filepath.Join(dir, fmt.Sprintf("rank-%05d-of-%05d.safetensors", rank, ranks))
}

// writeShard writes the file of a rank. A test replaces it, to save for as long as it likes.
var writeShard = safetensors.WriteFile

// SaveShards writes the parameters and states of all ranks to a directory: each rank its parts, in
// one file, and rank 0 also the undivided values. All ranks call it, with a shared directory that
// is used for one save only, such as one named by [Trainer.Steps] for [LatestShards]. It copies the values, and returns while they are written. The returned
// function waits until this rank has written its file. The checkpoint is complete once all ranks
// have written theirs: [Trainer.LoadShards] refuses incomplete ones.
func (t *Trainer) SaveShards(ctx context.Context, dir string) (wait func() error, err error) {
	if err := trainerGiven(ctx, t, "save"); err != nil {
		return nil, err
	}
	values, err := t.values(ctx)
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return nil, err
	}
	h := shardHeader{t.layout(), t.rank(), t.steps, map[string]shardedType{}}
	for name := range values {
		placement, divided := t.placements[name]
		if divided {
			shape, _ := placement.Type.Shape.Ints()
			h.Placements[name] = shardedType{shape, placement.Axes, placement.Flat}
		}
		if !h.Mesh.writes(placement, h.Rank) {
			delete(values, name)
		}
	}
	text, err := json.Marshal(h)
	if err != nil {
		return nil, err
	}
	done := make(chan error, 1)
	go func() {
		done <- writeShard(shardName(dir, h.Rank, h.Mesh.ranks()), values, withChecksum(values, map[string]string{shardKey: string(text)}))
	}()
	return func() error {
		err := <-done
		done <- err
		return err
	}, nil
}

// LatestShards returns the directory of the complete save with the most steps among those in a directory,
// "" if there is none. Each save of [Trainer.SaveShards] is in a directory of its own there, of any name; those that
// a failure has left incomplete are ignored. All ranks call it before any of them saves again.
func LatestShards(dir string) (string, error) {
	entries, err := os.ReadDir(dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "", err
	}
	latest, most := "", -1
	for _, e := range entries {
		name := filepath.Join(dir, e.Name())
		s, err := openShards(name)
		if err != nil {
			continue
		}
		s.close()
		if s.header.Steps > most {
			latest, most = name, s.header.Steps
		}
	}
	return latest, nil
}

// LoadShards resumes from a directory that [Trainer.SaveShards] has written in a run of any number
// of ranks: each rank reads what it needs, one whole value at a time. The errors are those of
// [Trainer.LoadFile]; a missing file, or one of another save, is an error of kind
// [safetensors.ErrDamaged].
func (t *Trainer) LoadShards(ctx context.Context, dir string) error {
	if err := trainerGiven(ctx, t, "load"); err != nil {
		return err
	}
	s, err := openShards(dir)
	if err != nil {
		return err
	}
	defer s.close()
	values := map[string]Tensor{}
	for _, f := range s.files {
		for _, name := range f.Names() {
			if _, ok := values[name]; ok {
				continue
			}
			x, err := s.read(name)
			if err != nil {
				return err
			}
			if values[name], err = t.Part(name, x); err != nil {
				return &CheckpointError{Err: err}
			}
		}
	}
	if err := s.check(); err != nil {
		return err
	}
	return t.load(ctx, values)
}

// shardSet are the files of a save.
type shardSet struct {
	header shardHeader // of rank 0
	files  []*safetensors.File
	sums   []checksum // of the tensors read so far, by file
}

func (s *shardSet) close() {
	for _, f := range s.files {
		_ = f.Close()
	}
}

// check returns an error of kind [safetensors.ErrDamaged] unless the checksums of the files, all tensors of which were read, are right.
func (s *shardSet) check() error {
	for rank, f := range s.files {
		if err := s.sums[rank].check(f.Metadata()); err != nil {
			return fmt.Errorf("rank %d: %w", rank, err)
		}
	}
	return nil
}

// openShards opens the files of all ranks.
func openShards(dir string) (*shardSet, error) {
	first, err := fs.Glob(os.DirFS(filepath.Clean(dir)), "rank-00000-of-*.safetensors") // dir is no part of the pattern
	if err != nil || len(first) != 1 {
		return nil, fmt.Errorf("%w: %s has %d files of rank 0, and must have one", safetensors.ErrDamaged, dir, len(first))
	}
	s := &shardSet{}
	for rank := 0; rank == 0 || rank < s.header.Mesh.ranks(); rank++ {
		name := filepath.Join(dir, first[0])
		if rank > 0 {
			name = shardName(dir, rank, s.header.Mesh.ranks())
		}
		f, err := safetensors.Open(name)
		if err != nil {
			s.close()
			return nil, fmt.Errorf("%w: rank %d: %w", safetensors.ErrDamaged, rank, err)
		}
		s.files, s.sums = append(s.files, f), append(s.sums, 0)
		var h shardHeader
		err = json.Unmarshal([]byte(f.Metadata()[shardKey]), &h)
		if rank == 0 {
			s.header = h
		}
		if err != nil || h.check() != nil || h.Rank != rank || h.Steps != s.header.Steps || !slices.Equal(h.Mesh, s.header.Mesh) {
			s.close()
			return nil, fmt.Errorf("%w: %s is not of rank %d of the same save: it is of rank %d and step %d", safetensors.ErrDamaged, name, rank, h.Rank, h.Steps)
		}
	}
	return s, nil
}

// check returns an error unless sizes are positive and the axes those of the mesh.
func (h *shardHeader) check() error {
	for _, a := range h.Mesh {
		if a.Size < 1 {
			return ir.Attrf("axis %q has size %d", a.Name, a.Size)
		}
	}
	at := h.Mesh.at(0)
	for name, p := range h.Placements {
		for i, axis := range append(slices.Clone(p.Axes), p.Flat) {
			c, ok := at[axis]
			if axis != "" && (!ok || i < len(p.Axes) && (len(p.Axes) != len(p.Shape) || p.Shape[i]%c.size != 0)) {
				return ir.Attrf("%q of shape %v is divided along %q", name, p.Shape, axis)
			}
		}
	}
	return nil
}

// read returns a whole value.
func (s *shardSet) read(name string) (Tensor, error) {
	p, divided := s.header.Placements[name]
	var whole Tensor
	for rank, f := range s.files {
		if _, ok := f.Info(name); !ok {
			continue
		}
		x, err := f.Tensor(name)
		if err != nil {
			return x, err
		}
		s.sums[rank].addTensor(name, x)
		if !divided {
			return x, nil
		}
		if whole.Dims == nil {
			whole = native.Zeros(x.DType, p.Shape...)
		}
		placement := parallel.Placement{Type: ir.Type{DType: x.DType, Shape: ir.Dims(p.Shape...)}, Axes: p.Axes, Flat: p.Flat}
		_, size := boxOf(placement, s.header.Mesh.at(rank))
		need := 1
		for _, n := range size {
			need *= n
		}
		if x.Len() < need || x.DType != whole.DType {
			return x, fmt.Errorf("%w: the part %q of rank %d is %s", safetensors.ErrDamaged, name, rank, x)
		}
		fill(placement, whole, x, s.header.Mesh.at(rank))
	}
	return whole, nil
}
