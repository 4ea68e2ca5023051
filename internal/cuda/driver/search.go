package driver

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
)

// PathVariable is the environment variable that lists the folders to search first.
const PathVariable = "RLX_CUDA_PATH"

// NCCLVariable is the environment variable with the path of NCCL's library, or its folder.
const NCCLVariable = "RLX_NCCL"

// oldest is the oldest supported major version of CUDA.
const oldest = 12

// environment is the input of the search; tests replace it.
type environment struct {
	get  func(name string) string
	glob func(pattern string) []string
	path func(program string) string // the path of a program on the PATH, or ""
}

// system is the environment of this process.
func system() environment {
	return environment{
		get: os.Getenv,
		glob: func(pattern string) []string {
			found, _ := filepath.Glob(pattern) // an error is a bad pattern, which finds nothing
			return found
		},
		path: programPath,
	}
}

// programPath does not follow links: in a virtual environment they lead to the system's
// Python.
func programPath(program string) string {
	for _, dir := range filepath.SplitList(os.Getenv("PATH")) {
		if _, err := os.Stat(filepath.Join(dir, program)); err == nil {
			return filepath.Join(dir, program)
		}
	}
	return ""
}

// driverPaths returns the paths to try for the driver, in order.
func driverPaths(e environment) []string {
	const name = "libcuda.so.1"
	var out []string
	for _, dir := range filepath.SplitList(e.get(PathVariable)) {
		out = append(out, filepath.Join(dir, name))
	}
	out = append(out, name)
	for _, dir := range append([]string{"/usr/local/nvidia/lib64", "/usr/lib/wsl/lib"}, systemDirs()...) {
		out = append(out, filepath.Join(dir, name))
	}
	return out
}

func systemDirs() []string {
	triple := map[string]string{"amd64": "x86_64-linux-gnu", "arm64": "aarch64-linux-gnu"}[runtime.GOARCH]
	return []string{filepath.Join("/usr/lib", triple), "/usr/lib64", "/usr/lib"}
}

// libraryDirs returns the folders to search for the toolkit's libraries, in order; the last,
// "", means the search of the system's loader.
func libraryDirs(e environment) []string {
	out := filepath.SplitList(e.get(PathVariable))
	add := func(patterns ...string) {
		for _, p := range patterns {
			for _, dir := range e.glob(p) {
				if !slices.Contains(out, dir) {
					out = append(out, dir)
				}
			}
		}
	}
	for _, v := range []string{"CUDA_HOME", "CUDA_PATH", "CUDA_ROOT"} {
		if root := e.get(v); root != "" {
			add(root+"/lib64", root+"/lib", root+"/targets/*/lib")
		}
	}
	const wheels = "/lib/python3*/site-packages/nvidia/*/lib"
	if root := e.get("VIRTUAL_ENV"); root != "" {
		add(root + wheels)
	}
	if root := e.get("CONDA_PREFIX"); root != "" {
		add(root+wheels, root+"/lib")
	}
	if python := e.path("python3"); python != "" {
		add(filepath.Dir(filepath.Dir(python)) + wheels)
	}
	add("/usr/local/cuda/lib64", "/usr/local/cuda-*/lib64", "/opt/cuda/lib64")
	add(systemDirs()...)
	add("/usr/lib/python3*/*-packages/nvidia/*/lib", "/usr/local/lib/python3*/*-packages/nvidia/*/lib")
	if home := e.get("HOME"); home != "" {
		add(home + "/.local" + wheels)
	}
	return append(out, "")
}

// candidate is a path where a library may be.
type candidate struct {
	dir, path string
	major     int
}

// candidates returns the paths to try for a library of the toolkit ("nvrtc"), in order, with
// a driver of a version such as 13000.
func candidates(e environment, library string, driverVersion int) []candidate {
	var out []candidate
	dirs := libraryDirs(e)
	for major := driverVersion / 1000; major >= oldest; major-- {
		for _, dir := range dirs {
			out = append(out, candidate{dir, filepath.Join(dir, fmt.Sprintf("lib%s.so.%d", library, major)), major})
		}
	}
	return out
}
