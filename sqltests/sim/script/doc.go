// Package script has the simulator's schedules: records, their text and their generator.
//
// Reading order: Record, Schedule, Generate.
package script
