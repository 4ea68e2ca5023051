package rlx

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"

	"github.com/rlx-go/rlx/autodiff/parallel"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/ops"
	"github.com/rlx-go/rlx/native"
	"github.com/rlx-go/rlx/native/collective"
	"github.com/rlx-go/rlx/native/collective/launch"
	"github.com/rlx-go/rlx/native/collective/tcp"
)

// DataAxis is the mesh axis of [DataParallel].
const DataAxis = "data"

// DataParallel trains one model with several processes that a launcher has started, see package
// launch: each trains on its own part of every batch and all make the same updates. With one
// process, training is that without the option. Each rank calls the same methods of its trainer the
// same number of times. Losses are those of the whole batch on every rank. A step that one rank
// refuses or fails is an error on all ranks, an [*collective.Error] on those that were not at fault,
// within the deadline of the group; start again from a checkpoint then.
//
// Other outputs of a step, and states of types other than floats, are those of each rank. Give
// ranks different random keys if dropout should differ between them: see [ops.AxisIndex].
type DataParallel struct {
	// Group is the group of all ranks: see [Session.Group].
	Group *collective.Group
	// Weight names an output of the loss with the number of rows, tokens or unmasked elements whose
	// mean the loss is: see [parallel.Data]. "" means that it is the same on all ranks.
	Weight string
	// Bucket is the maximum size in bytes of gradients reduced together; 0 means
	// [parallel.DefaultBucket].
	Bucket int
	// Shard divides the states of the optimizer among the ranks, and reduces gradients to parts in
	// buckets, as in stages 1 and 2 of ZeRO: see [parallel.Shard]. [Program.Get] and [Program.Save]
	// then return this rank's part: see [Trainer.Whole] and [Trainer.SaveShards].
	Shard bool
	// ShardParams divides the parameters as well, as stage 3 of ZeRO does. They are gathered in blocks
	// of Bucket bytes, Ahead of them before the one in use; 0 means [parallel.DefaultAhead].
	ShardParams bool
	Ahead       int
	// Log, if not nil, receives the reports of the passes: [parallel.Report] and
	// [parallel.ShardReport].
	Log io.Writer
}

// joined is the group of this process's run, formed once.
var joined struct {
	sync.Mutex
	group *collective.Group
}

// Group returns the group of all processes of a launcher's run, from the environment that torchrun,
// Slurm, MPI or Kubernetes sets: see [launch.From]. The processes that mpirun or mpiexec starts are
// connected by MPI if the program imports package native/collective/mpi, others by TCP; RLX_ENGINE=mpi or
// tcp says otherwise. The first call waits for all processes; later
// calls, also of other sessions, return the same group with its deadline. Without a launcher the
// group has one rank. The errors are those of [launch.From], [tcp.Join] and the engine of MPI, and the one that ended
// the group, if any. The devices are the CPU and CUDA GPUs; the error is of kind
// [ir.ErrUnsupported] for several ranks on another one, and [native.ErrUnavailable] if NCCL, which
// GPUs need, is missing.
func (s *Session) Group(ctx context.Context, o collective.Options) (*collective.Group, error) {
	if err := s.given(ctx, "group"); err != nil {
		return nil, err
	}
	run, err := launch.Environment()
	if err != nil {
		return nil, err
	}
	if run.Size > 1 {
		if err := s.collectives(); err != nil {
			return nil, err
		}
	}
	joined.Lock()
	defer joined.Unlock()
	if joined.group != nil {
		return joined.group, joined.group.Err()
	}
	joined.group, err = join(ctx, run, o)
	return joined.group, err
}

// join forms the group of a run by its engine.
func join(ctx context.Context, run launch.Run, o collective.Options) (*collective.Group, error) {
	if run.Engine != launch.MPI || run.Size == 1 {
		return tcp.Join(ctx, run, o)
	}
	mpi, imported := collective.Registered(launch.MPI)
	must := run.Address == "" || os.Getenv(launch.EngineVariable) != ""
	switch {
	case imported && (must || mpi.Available() == nil):
		return mpi.Join(ctx, o)
	case must:
		err := errors.New("the program has no MPI: it must import github.com/rlx-go/rlx/native/collective/mpi")
		return nil, &collective.Error{Kind: collective.ErrJoin, Rank: run.Rank, Size: run.Size, Peer: -1, Err: err}
	}
	// A program without MPI trains under mpirun, too, where all processes are on this machine.
	return tcp.Join(ctx, run, o)
}

// collectives returns an error if the device cannot move data between ranks.
func (s *Session) collectives() error {
	b, ok := s.backend.(native.Collectives)
	if !ok {
		return ir.Errorf(ir.ErrUnsupported, "several ranks on device %q; the devices with collectives are \"cpu\" and \"cuda\"", s.backend.Name())
	}
	if err := b.Collectives(); err != nil {
		return &native.Error{Backend: s.backend.Name(), Call: "group", Kind: native.ErrUnavailable, Err: err}
	}
	return nil
}

// localDevice returns the device of a backend for this process. Under a launcher that is the device
// with the process's number on its machine, unless the process sees only one device.
func localDevice(b native.Backend) native.Backend {
	several, ok := b.(native.MultiDevice)
	if !ok {
		return b
	}
	run, err := launch.Environment() // Session.Group reports the error
	if err != nil || run.LocalRank == 0 {
		return b
	}
	own := several.Device(run.LocalRank)
	if own.Probe() != nil && several.Device(1).Probe() != nil {
		return b // CUDA_VISIBLE_DEVICES may show each process one device
	}
	return own
}

// size returns the number of ranks, 1 without the option.
func (d *DataParallel) size() int {
	if d == nil || d.Group == nil {
		return 1
	}
	return d.Group.Size()
}

// mesh returns the mesh to compile for, nil for one rank.
func (d *DataParallel) mesh(ctx context.Context) (*collective.Mesh, error) {
	if d.size() == 1 {
		return nil, nil
	}
	return collective.NewMesh(ctx, d.Group, collective.Axis{Name: DataAxis, Size: d.size()})
}

// gradients returns the option Gradients of a step: the mean over ranks, followed by the caller's
// transform.
func (d *DataParallel) gradients(loss string, then func(*ir.Graph) (*ir.Graph, error)) func(*ir.Graph) (*ir.Graph, error) {
	if d.size() == 1 {
		return then
	}
	pass := parallel.Data{Mesh: d.axis(), Loss: loss, Weight: d.Weight, Bucket: d.Bucket, Scatter: d.shards()}
	return func(g *ir.Graph) (*ir.Graph, error) {
		g, report, err := pass.Gradients(g)
		if err != nil {
			return nil, err
		}
		if err := d.log(report); err != nil {
			return nil, err
		}
		if then == nil {
			return g, nil
		}
		return then(g)
	}
}

// axis is the mesh axis of the ranks in a graph.
func (d *DataParallel) axis() ops.MeshAttrs {
	return ops.MeshAttrs{MeshAxis: DataAxis, Devices: d.size()}
}

func (d *DataParallel) log(report fmt.Stringer) error {
	if d.Log == nil {
		return nil
	}
	_, err := fmt.Fprint(d.Log, report)
	return err
}

// shards reports whether states are divided.
func (d *DataParallel) shards() bool { return d.size() > 1 && (d.Shard || d.ShardParams) }

// divide divides states of the step, the first of some entries, by the options, and those that
// other entries share with it.
func (d *DataParallel) divide(entries []ir.Entry) ([]ir.Entry, map[string]parallel.Placement, error) {
	if !d.shards() {
		return entries, nil, nil
	}
	pass := parallel.Shard{Mesh: d.axis(), Bucket: d.Bucket, Params: d.ShardParams, Ahead: d.Ahead}
	whole := entries[0].Graph
	step, report, err := pass.States(whole)
	if err != nil {
		return nil, nil, err
	}
	if err := d.log(report); err != nil {
		return nil, nil, err
	}
	entries[0].Graph = step
	for i := range entries[1:] {
		e := &entries[1+i]
		if e.Graph, err = pass.Divide(e.Graph, report.Sharded); err != nil {
			return nil, nil, fmt.Errorf("entry %q: %w", e.Name, err)
		}
	}
	placements := map[string]parallel.Placement{}
	for _, name := range report.Sharded {
		p, _ := whole.Port(name)
		placements[name] = parallel.Placement{Type: p.Value.Type(), Flat: DataAxis}
	}
	return entries, placements, nil
}
