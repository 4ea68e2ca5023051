package main

func writeModels(string) error { return nil }
