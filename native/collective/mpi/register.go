package mpi

import (
	"github.com/rlx-go/rlx/native/collective"
	"github.com/rlx-go/rlx/native/collective/launch"
)

func init() { collective.Register(launch.MPI, collective.Joiner{Available: Available, Join: Join}) }
