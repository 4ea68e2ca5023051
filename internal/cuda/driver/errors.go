package driver

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// ErrUnavailable means that the machine lacks a CUDA driver, an NVRTC or a device.
var ErrUnavailable = errors.New("CUDA is not available")

// Error is a failed call.
type Error struct {
	Call   string // of the API of the driver, NVRTC, cuBLASLt, cuSOLVER or NCCL
	Code   int    // the status that it returned
	Name   string // "CUDA_ERROR_OUT_OF_MEMORY"
	Text   string // the driver's description, or NVRTC's log
	Kernel string // the kernel concerned, or ""
}

// Error returns "kernel map_add: cuLaunchKernel: CUDA_ERROR_INVALID_VALUE (1):
// invalid argument".
func (e *Error) Error() string {
	kernel := ""
	if e.Kernel != "" {
		kernel = "kernel " + e.Kernel + ": "
	}
	return fmt.Sprintf("%s%s: %s (%d): %s", kernel, e.Call, e.Name, e.Code, e.Text)
}

// OutOfMemory reports whether the device had too little memory for the call. The device
// stays usable.
func (e *Error) OutOfMemory() bool { return e.Code == 2 && e.ofDriver() }

// Lost reports whether the process has lost the device: after an illegal access, a failed
// launch or a hardware error. Its memory is gone, and the driver refuses to open it again.
func (e *Error) Lost() bool { return e.ofDriver() && slices.Contains(losses, e.Code) }

// Refused reports whether NVRTC or the driver rejected code: an unknown name, an unsupported
// version or architecture.
func (e *Error) Refused() bool {
	return e.Call == nvrtcCall || e.ofDriver() && slices.Contains(refusals, e.Code)
}

// refusals lists the driver's codes for rejected code.
var refusals = []int{
	200, 209, // invalid image, none for the device
	218, 221, 222, 223, // invalid PTX, no compiler for it, unsupported version, compiling disabled
	300, 302, // invalid source, a symbol that is not found
}

// ErrNoAlgorithm means that a library has no algorithm for a routine, or none within its workspace.
var ErrNoAlgorithm = errors.New("the library has no algorithm for the routine")

// nvrtcCall, and names that begin with otherCalls, are calls of other libraries than the driver.
const nvrtcCall = "nvrtcCompileProgram"

var otherCalls = []string{"cublasLt", "cusolver", "nccl"}

func (e *Error) ofDriver() bool {
	return e.Call != nvrtcCall && !slices.ContainsFunc(otherCalls, func(prefix string) bool { return strings.HasPrefix(e.Call, prefix) })
}

// losses lists the codes after which the driver refuses all further work of the process.
var losses = []int{
	4,        // deinitialized
	46,       // device unavailable
	201, 709, // no such context, context destroyed
	214, 220, 226, // uncorrectable ECC error, NVLink, contained memory error
	700,           // illegal address
	702,           // launch timeout
	710,           // assertion on the device
	714, 715, 716, // hardware stack error, illegal instruction, misaligned address
	717, 718, 719, // invalid address space, invalid program counter, launch failed
	721, // tensor memory leak
	999, // unknown
}

// In adds the name of a kernel to err if it is an [*Error].
func In(kernel string, err error) error {
	var e *Error
	if !errors.As(err, &e) {
		return err
	}
	named := *e
	named.Kernel = kernel
	return &named
}
