package tcp_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
	"unsafe"

	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/native/collective"
	"github.com/rlx-go/rlx/native/collective/launch"
	"github.com/rlx-go/rlx/native/collective/tcp"
)

// freeAddress returns an address of this machine that nobody listens at.
func freeAddress(t testing.TB) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

// join returns the groups of n ranks in this process, connected by TCP.
func join(t testing.TB, n int, o collective.Options) []*collective.Group {
	t.Helper()
	address, groups := freeAddress(t), make([]*collective.Group, n)
	for rank, err := range each(n, func(rank int) (err error) {
		groups[rank], err = tcp.Join(t.Context(), launch.Run{Rank: rank, Size: n, Address: address, Token: t.Name()}, o)
		return err
	}) {
		if err != nil {
			t.Fatalf("rank %d: %v", rank, err)
		}
	}
	t.Cleanup(func() {
		for _, g := range groups {
			g.Close()
		}
	})
	return groups
}

// each calls f for all ranks at the same time and returns their errors.
func each(n int, f func(rank int) error) []error {
	errs := make([]error, n)
	var all sync.WaitGroup
	for rank := range n {
		all.Go(func() { errs[rank] = f(rank) })
	}
	all.Wait()
	return errs
}

func bytesOf[T any](x []T) []byte {
	var element T
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(x))), len(x)*int(unsafe.Sizeof(element)))
}

// engines makes groups of n ranks by each engine.
var engines = map[string]func(t *testing.T, n int) []*collective.Group{
	"local": func(_ *testing.T, n int) []*collective.Group { return collective.Local(n, collective.Options{}) },
	"tcp":   func(t *testing.T, n int) []*collective.Group { return join(t, n, collective.Options{}) },
}

// TestCollectivesMoveWhatTheySay compares the result of every collective with its definition, on
// integers, whose sums are exact in any order.
func TestCollectivesMoveWhatTheySay(t *testing.T) {
	for name, made := range engines {
		for _, n := range []int{1, 2, 3, 5} {
			groups := made(t, n)
			for _, length := range []int{0, 1, 7, 5000} {
				t.Run(fmt.Sprint(name, n, "x", length), func(t *testing.T) { checkAll(t, groups, length*n) })
			}
		}
	}
}

// checkAll makes all collectives of arrays of a length that n divides.
func checkAll(t *testing.T, groups []*collective.Group, length int) {
	n, random := len(groups), rand.New(rand.NewPCG(1, uint64(length)))
	x := make([][]float64, n)
	for i := range x {
		for range length {
			x[i] = append(x[i], float64(random.IntN(200)-100))
		}
	}
	sum, most, part := make([]float64, length), slices.Clone(x[0]), length/n
	for _, from := range x {
		for i, v := range from {
			sum[i] += v
			most[i] = max(most[i], v)
		}
	}
	root := n / 2
	var pairs [][2]int
	for i := 1; i < n; i++ {
		pairs = append(pairs, [2]int{i, i - 1})
	}
	for _, c := range []struct {
		call collective.Call
		want func(rank int) []float64
	}{
		{collective.Call{Op: collective.AllReduce}, func(int) []float64 { return sum }},
		{collective.Call{Op: collective.AllReduce, Reduction: collective.Max}, func(int) []float64 { return most }},
		{collective.Call{Op: collective.AllGather}, func(int) []float64 { return slices.Concat(x...) }},
		{collective.Call{Op: collective.ReduceScatter}, func(rank int) []float64 { return sum[rank*part:][:part] }},
		{collective.Call{Op: collective.AllToAll}, func(rank int) (out []float64) {
			for _, from := range x {
				out = append(out, from[rank*part:][:part]...)
			}
			return out
		}},
		{collective.Call{Op: collective.Permute, Pairs: pairs}, func(rank int) []float64 {
			if rank == n-1 {
				return make([]float64, length)
			}
			return x[rank+1]
		}},
		{collective.Call{Op: collective.Broadcast, Root: root}, func(int) []float64 { return x[root] }},
	} {
		for rank, err := range each(n, func(rank int) error {
			got := make([]float64, len(c.want(rank)))
			for i := range got {
				got[i] = -12345
			}
			call := c.call
			call.DType, call.Send, call.Recv = ir.F64, bytesOf(x[rank]), bytesOf(got)
			if err := groups[rank].Do(t.Context(), &call); err != nil {
				return err
			}
			if !slices.Equal(got, c.want(rank)) {
				return fmt.Errorf("the result differs")
			}
			return nil
		}) {
			if err != nil {
				t.Errorf("%s %s on rank %d: %v", c.call.Op, c.call.Reduction, rank, err)
			}
		}
	}
}

// TestSumsAreTheSameBitsOnAllRanks and by both engines, also where the order of a sum matters.
func TestSumsAreTheSameBitsOnAllRanks(t *testing.T) {
	const n = 4
	for _, d := range []ir.DType{ir.F32, ir.BF16, ir.F16, ir.C64, ir.I8} {
		for _, bytes := range []int{64, 40 << 10} {
			var first []byte
			for _, made := range engines {
				groups, got := made(t, n), make([][]byte, n)
				for rank, err := range each(n, func(rank int) error {
					random := rand.New(rand.NewPCG(uint64(rank), 7))
					send := make([]byte, bytes)
					for i := range send {
						send[i] = byte(random.Uint32())
						if d.IsFloat() || d.IsComplex() {
							send[i] &= 0x3f | byte(0x80*(i%2)) // no infinities
						}
					}
					got[rank] = make([]byte, bytes)
					return groups[rank].AllReduce(t.Context(), d, collective.Sum, send, got[rank])
				}) {
					if err != nil {
						t.Fatalf("rank %d: %v", rank, err)
					}
					if first == nil {
						first = got[0]
					}
					if !slices.Equal(got[rank], first) {
						t.Errorf("%s: rank %d has other bits", d, rank)
					}
				}
			}
		}
	}
}

// TestSplitsAreGroupsOfTheirOwn makes a mesh of 2 by 3 and sums along both axes.
func TestSplitsAreGroupsOfTheirOwn(t *testing.T) {
	for name, made := range engines {
		groups := made(t, 6)
		for rank, err := range each(6, func(rank int) error {
			m, err := collective.NewMesh(t.Context(), groups[rank], collective.Axis{Name: "data", Size: 2}, collective.Axis{Name: "model", Size: 3})
			if err != nil {
				return err
			}
			for _, c := range []struct {
				axis string
				want int32
			}{{"data", int32(2*(rank%3) + 3)}, {"model", int32(rank/3*9 + 3)}} {
				send, got := []int32{int32(rank)}, []int32{0}
				if err := m.Along(c.axis).AllReduce(t.Context(), ir.I32, collective.Sum, bytesOf(send), bytesOf(got)); err != nil {
					return err
				}
				if got[0] != c.want {
					return fmt.Errorf("along %s the sum is %d, not %d", c.axis, got[0], c.want)
				}
			}
			return nil
		}) {
			if err != nil {
				t.Errorf("%s, rank %d: %v", name, rank, err)
			}
		}
	}
}

// faults are what one rank of three does while the others make an all-reduce, and the kinds of
// error that the others may have.
var faults = map[string]struct {
	do    func(ctx context.Context, g *collective.Group) error
	kinds []error
}{
	"late": {func(ctx context.Context, g *collective.Group) error { return nil }, []error{collective.ErrDeadline, collective.ErrAborted}},
	"another array": {func(ctx context.Context, g *collective.Group) error {
		return g.AllReduce(ctx, ir.F32, collective.Sum, make([]byte, 16), make([]byte, 16))
	}, []error{collective.ErrMismatch, collective.ErrAborted}},
	"another collective": {func(ctx context.Context, g *collective.Group) error {
		return g.ReduceScatter(ctx, ir.F32, collective.Sum, make([]byte, 12), make([]byte, 4))
	}, []error{collective.ErrMismatch, collective.ErrAborted}},
	"aborted": {func(ctx context.Context, g *collective.Group) error {
		g.Abort(errors.New("out of cheese"))
		return nil
	}, []error{collective.ErrAborted}},
	"closed": {func(ctx context.Context, g *collective.Group) error { return g.Close() }, []error{collective.ErrPeer, collective.ErrAborted}},
}

// TestAFaultEndsAllRanks: every other rank ends by a typed error within its deadline, and stays
// unusable.
func TestAFaultEndsAllRanks(t *testing.T) {
	const deadline = 300 * time.Millisecond
	for engine := range engines {
		for name, fault := range faults {
			t.Run(engine+" "+name, func(t *testing.T) {
				groups := collective.Local(3, collective.Options{Deadline: deadline})
				if engine == "tcp" {
					groups = join(t, 3, collective.Options{Deadline: deadline})
				}
				begun := time.Now()
				errs := each(3, func(rank int) error {
					if rank == 1 {
						return fault.do(t.Context(), groups[rank])
					}
					return groups[rank].AllReduce(t.Context(), ir.F32, collective.Sum, make([]byte, 12), make([]byte, 12))
				})
				if took := time.Since(begun); took > deadline+2*time.Second {
					t.Errorf("it took %v", took)
				}
				for _, rank := range []int{0, 2} {
					var e *collective.Error
					if !errors.As(errs[rank], &e) || !slices.ContainsFunc(fault.kinds, func(k error) bool { return errors.Is(e, k) }) {
						t.Errorf("rank %d: %v", rank, errs[rank])
						continue
					}
					if e.Rank != rank || e.Size != 3 || e.Bytes != 12 || !strings.Contains(e.Call, "all_reduce sum f32[3]") || e.Sequence != 1 {
						t.Errorf("rank %d: the error is %#v", rank, e)
					}
					if err := groups[rank].Barrier(t.Context()); !errors.As(err, &e) {
						t.Errorf("rank %d goes on: %v", rank, err)
					}
				}
			})
		}
	}
}

// TestDigestsAreCompared: all ranks learn which one differs.
func TestDigestsAreCompared(t *testing.T) {
	for name, made := range engines {
		groups := made(t, 3)
		for rank, err := range each(3, func(rank int) error { return groups[rank].Agree(t.Context(), "the plan", [32]byte{1}) }) {
			if err != nil {
				t.Errorf("%s: rank %d: %v", name, rank, err)
			}
		}
		for rank, err := range each(3, func(rank int) error {
			return groups[rank].Agree(t.Context(), "the plan", [32]byte{byte(rank / 2)})
		}) {
			var e *collective.Error
			if !errors.As(err, &e) || !errors.Is(err, collective.ErrMismatch) || e.Peer != 2 || !strings.Contains(err.Error(), "the plan") {
				t.Errorf("%s: rank %d: %v", name, rank, err)
			}
		}
	}
}

// TestRecordsKeepTheLastCollectives keeps 64 of 70.
func TestRecordsKeepTheLastCollectives(t *testing.T) {
	g := collective.Local(1, collective.Options{})[0]
	for range 70 {
		if err := g.Barrier(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	r := g.Record()
	if len(r) != 64 || r[0].Sequence != 7 || r[63].Sequence != 70 || !r[63].Done || r[63].Bytes != 4 {
		t.Errorf("there are %d, from %v to %v", len(r), r[0], r[len(r)-1])
	}
	if text := g.FormatRecord(); !strings.Contains(text, "70 all_reduce max i32[1], 4 bytes") {
		t.Error(text)
	}
}

// TestMalformedCallsAreRefused before anything is sent: the group stays usable.
func TestMalformedCallsAreRefused(t *testing.T) {
	g := collective.Local(1, collective.Options{})[0]
	four := make([]byte, 4)
	for _, c := range []struct {
		call collective.Call
		kind error
	}{
		{collective.Call{Op: 99, DType: ir.F32, Send: four, Recv: four}, ir.ErrAttr},
		{collective.Call{Op: collective.AllReduce, Send: four, Recv: four}, ir.ErrDType},
		{collective.Call{Op: collective.AllReduce, DType: ir.Bool, Send: four, Recv: four}, ir.ErrDType},
		{collective.Call{Op: collective.AllReduce, DType: ir.F32, Send: four, Recv: four[:3]}, ir.ErrShape},
		{collective.Call{Op: collective.AllGather, DType: ir.F64, Send: four, Recv: four}, ir.ErrShape},
		{collective.Call{Op: collective.Broadcast, Root: 1, DType: ir.F32, Send: four, Recv: four}, ir.ErrAttr},
		{collective.Call{Op: collective.Permute, Pairs: [][2]int{{0, 0}, {0, 0}}, DType: ir.F32, Send: four, Recv: four}, ir.ErrAttr},
	} {
		if err := g.Do(t.Context(), &c.call); !errors.Is(err, c.kind) {
			t.Errorf("%v: %v", c.call.Op, err)
		}
	}
	if _, err := collective.NewMesh(t.Context(), g, collective.Axis{Name: "data", Size: 2}); !errors.Is(err, ir.ErrAttr) {
		t.Errorf("a mesh of two: %v", err)
	}
	if err := g.Barrier(t.Context()); err != nil {
		t.Error(err)
	}
}

// TestRunsAreKeptApart: a process of another run is refused and disturbs none, one of another size
// or a second one of a rank is an error.
func TestRunsAreKeptApart(t *testing.T) {
	address := freeAddress(t)
	short, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	defer cancel()
	errs := each(4, func(i int) error {
		r := launch.Run{Rank: i, Size: 2, Address: address, Token: "ours"}
		if i == 2 {
			r.Rank, r.Token = 1, "theirs"
		}
		if i == 3 {
			r.Rank, r.Token = 1, ""
		}
		if i == 1 {
			time.Sleep(200 * time.Millisecond)
		}
		_, err := tcp.Join(short, r, collective.Options{})
		return err
	})
	if errs[0] != nil || errs[1] != nil || !errors.Is(errs[2], collective.ErrJoin) || !errors.Is(errs[3], collective.ErrJoin) {
		t.Errorf("the errors are %v", errs)
	}
	address = freeAddress(t)
	for rank, err := range each(2, func(i int) error {
		_, err := tcp.Join(short, launch.Run{Rank: i, Size: 2 + i, Address: address}, collective.Options{})
		return err
	}) {
		if !errors.Is(err, collective.ErrJoin) || !strings.Contains(err.Error(), "3 ranks") {
			t.Errorf("rank %d: %v", rank, err)
		}
	}
}

// BenchmarkAllReduce sums a bucket of gradients over ranks on this machine. A rank sends 2·(n−1)/n of
// it.
func BenchmarkAllReduce(b *testing.B) {
	for _, n := range []int{2, 4} {
		for _, bytes := range []int{4 << 10, 25 << 20} {
			b.Run(fmt.Sprint(n, "x", bytes), func(b *testing.B) {
				groups := join(b, n, collective.Options{})
				b.SetBytes(int64(bytes))
				b.ResetTimer()
				for rank, err := range each(n, func(rank int) error {
					send, recv := make([]byte, bytes), make([]byte, bytes)
					for range b.N {
						if err := groups[rank].AllReduce(b.Context(), ir.F32, collective.Sum, send, recv); err != nil {
							return err
						}
					}
					return nil
				}) {
					if err != nil {
						b.Fatalf("rank %d: %v", rank, err)
					}
				}
			})
		}
	}
}

// TestASilentConnectionDoesNotStopARun: a process that connects and says nothing is left after some
// seconds, and one that says nonsense at once.
func TestASilentConnectionDoesNotStopARun(t *testing.T) {
	address := freeAddress(t)
	errs := each(4, func(i int) error {
		if i < 2 {
			time.Sleep(time.Duration(i) * 300 * time.Millisecond)
			_, err := tcp.Join(t.Context(), launch.Run{Rank: i, Size: 2, Address: address}, collective.Options{})
			return err
		}
		time.Sleep(100 * time.Millisecond)
		c, err := net.Dial("tcp", address)
		if err != nil {
			return err
		}
		defer c.Close()
		if i == 2 {
			_, err = c.Write([]byte("GET / HTTP/1.1\r\n\r\n"))
			return err
		}
		_, _ = c.Read(make([]byte, 1)) // returns once the other side has given up
		return nil
	})
	for i, err := range errs {
		if err != nil {
			t.Errorf("%d: %v", i, err)
		}
	}
}

// TestClosingASplitGroupLeavesTheOther usable, also if both have the same ranks.
func TestClosingASplitGroupLeavesTheOther(t *testing.T) {
	groups := join(t, 2, collective.Options{})
	for rank, err := range each(2, func(rank int) error {
		sub, err := groups[rank].Split(t.Context(), 0, -rank)
		if err != nil {
			return err
		}
		if sub.Rank() != 1-rank {
			return fmt.Errorf("its rank is %d", sub.Rank())
		}
		if err := sub.Close(); err != nil {
			return err
		}
		return groups[rank].Barrier(t.Context())
	}) {
		if err != nil {
			t.Errorf("rank %d: %v", rank, err)
		}
	}
}
