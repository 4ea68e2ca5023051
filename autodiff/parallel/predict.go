package parallel

import (
	"math"
	"math/bits"

	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/ops"
)

// Link is a connection of a device with others.
type Link struct {
	Bandwidth float64 // bytes per second, in one direction
	Latency   float64 // seconds for one message of a collective
}

// Network describes how devices are connected: those of a host with each other, and each with other hosts.
type Network struct {
	Host            int // devices of a host, at least 1
	Inside, Between Link
}

// H200s returns the network of hosts with eight H200s: NVLink as measured between two of them with NCCL (298
// GB/s of bus bandwidth, 14 µs for an all-reduce of 1 MiB, 3.5 of them for its bytes), and InfiniBand NDR of
// 400 Gbit/s for each device by its data sheet, with a latency that is an estimate.
func H200s() Network {
	return Network{Host: 8, Inside: Link{298e9, 5e-6}, Between: Link{50e9, 10e-6}}
}

// A100s returns the network of hosts with eight A100s: NVLink of 300 GB/s in each direction (NCCL's
// rings use 235) and InfiniBand HDR of 200 Gbit/s for each device, both by data sheets, with latencies that are
// estimates.
func A100s() Network {
	return Network{Host: 8, Inside: Link{235e9, 5e-6}, Between: Link{25e9, 10e-6}}
}

// Seconds returns the time of a collective in which each of n devices sends an array of some bytes: α + bytes/β
// (Hockney 1994), with the bytes of [Traffic]. NCCL's rings use all links of a host, each ring a
// different one, so that the bandwidth between hosts is that of all links of a host, at most that inside. Latencies
// are those of a ring inside a host and of a tree of hosts.
func (w Network) Seconds(op ir.Op, bytes int64, n int) float64 {
	if n <= 1 {
		return 0
	}
	inside := min(n, max(w.Host, 1))
	hosts := (n + inside - 1) / inside
	bandwidth := math.Inf(1)
	if inside > 1 {
		bandwidth = w.Inside.Bandwidth
	}
	if hosts > 1 {
		bandwidth = min(bandwidth, float64(inside)*w.Between.Bandwidth)
	}
	latency := float64(inside-1)*w.Inside.Latency + float64(bits.Len(uint(hosts-1)))*w.Between.Latency
	if op == ops.OpAllReduce {
		latency *= 2
	}
	return latency + float64(sent(op, bytes, int64(n)))/bandwidth
}

// Compute is the time of a training step of one device with its part of the batch, in seconds.
type Compute struct{ Forward, Backward, Update float64 }

// Seconds returns the time of the step.
func (c Compute) Seconds() float64 { return c.Forward + c.Backward + c.Update }

// Step returns the predicted seconds of a data-parallel step of n devices, and the part that waits for the network. A
// bucket is reduced once its gradients are computed and the bucket before it is reduced; the backward pass computes
// gradients at an even rate of bytes. The prediction omits that collectives slow down concurrent kernels.
func (r Report) Step(w Network, c Compute, n int) (seconds, waits float64) {
	total, made, free := 0, 0, 0.0
	for _, k := range r.Buckets {
		total += k.Bytes
	}
	for _, k := range r.Buckets {
		made += k.Bytes
		ready := c.Forward + c.Backward*float64(made)/float64(max(total, 1))
		free = math.Max(free, ready) + w.Seconds(ops.OpAllReduce, int64(k.Bytes), n)
	}
	seconds = math.Max(free, c.Forward+c.Backward) + c.Update
	return seconds, seconds - c.Seconds()
}
