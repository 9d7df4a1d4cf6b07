"""Reports in the shapes that VTune and APS print, as their documentation shows them; the figures are made up."""

HOTSPOTS_CSV = """\
Function,CPU Time,CPU Time:Effective Time,CPU Time:Spin Time,CPU Time:Overhead Time,Module,Function (Full),Source File,Start Address
conv_forward,12.345678,11.345678,0.750000,0.250000,libnet.so,"conv_forward(float const*, int)",conv.c,0x401590
"reduce<float, 4>",3.250125,3.250125,0.0,0.0,libnet.so,"reduce<float, 4>(float*)",reduce.h,0x402384
decode_jpeg,0.512500,0.512500,0.0,0.0,libjpeg.so.62,decode_jpeg,[Unknown],0x7f00
[Outside any known module],0.125000,0.125000,0.0,0.0,[Unknown],[Outside any known module],[Unknown],0x0
"""
HOTSPOTS_TEXT = """\
vtune: Using result path `/scratch/me/r000hs'
vtune: Executing actions 75 % Generating a report                              Function                    CPU Time  CPU Time:Effective Time  CPU Time:Spin Time  CPU Time:Overhead Time  Module         Function (Full)                  Source File  Start Address
--------------------------  --------  -----------------------  ------------------  ----------------------  -------------  -------------------------------  -----------  -------------
conv_forward                 12.346s                  11.346s              0.750s                  0.250s  libnet.so      conv_forward(float const*, int)  conv.c       0x401590
decode_jpeg                512.500ms                512.500ms                  0s                      0s  libjpeg.so.62  decode_jpeg                      [Unknown]    0x7f00
vtune: Executing actions 100 % done
"""
MODULES_CSV = """\
Module\tCPU Time\tCPU Time:Effective Time\tInstructions Retired\tCPI Rate
libnet.so\t15.595803\t14.595803\t41000500000\t0.710000
libjpeg.so.62\t0.512500\t0.512500\t1200000000\t0.900000
"""
TREE_CSV = """\
Function Stack;CPU Time:Total;CPU Time:Self;Module
Total;100.0;0.0;
  main;97.5;0.25;app
    conv_forward;95.0;12.5;libnet.so
"""
EVENTS_CSV = """\
Package,Hardware Event Count:UNC_M_CAS_COUNT.RD,Hardware Event Count:UNC_M_CAS_COUNT.WR
package_0,1250000,640000
package_1,1375000,510000
"""
FUNCTION_EVENTS = """\
Function|Hardware Event Count:INST_RETIRED.ANY|Hardware Event Count:CPU_CLK_UNHALTED.THREAD|Hardware Event Count:MEM_LOAD_RETIRED.L3_MISS|Module
conv_forward|41000500000|29000250000|9500|libnet.so
decode_jpeg|1200000000|1100000000|300|libjpeg.so.62
"""
SUMMARY = """\
vtune: Collection stopped.
vtune: Executing actions 75 % Generating a report                              Elapsed Time: 24.750s
    CPU Time: 41.125s
        Effective Time: 38.500s
        Spin Time: 2.125s
            MPI Busy Wait Time: 1.500s
            Other: 0.625s
        Overhead Time: 0.500s
    Instructions Retired: 98,765,400,000
    CPI Rate: 0.999
     | The CPI may be too high.
     |
    Total Thread Count: 9
    Paused Time: 0s

Top Hotspots
Function       Module         CPU Time  % of CPU Time(%)
-------------  -------------  --------  ----------------
conv_forward   libnet.so       30.250s             73.6%
decode_jpeg    libjpeg.so.62    2.500s              6.1%
[Others]       N/A              8.375s             20.4%
Effective CPU Utilization: 20.8% (1.662 out of 8 logical CPUs)
 | The metric value is low, which may signal a poor logical CPU cores
 | utilization: load imbalance.
 |
Memory Bound: 28.7% of Pipeline Slots
    Cache Bound: 18.8% of Clockticks
    DRAM Bound: 13.2% of Clockticks
        DRAM Bandwidth Bound: 0.0% of Elapsed Time
    NUMA: % of Remote Accesses: 5.1%

    Bandwidth Utilization
    Bandwidth Domain             Platform Maximum  Observed Maximum  Average  % of Elapsed Time with High BW Utilization(%)
    ---------------------------  ----------------  ----------------  -------  ---------------------------------------------
    DRAM, GB/sec                 218                         35.900   10.159                                           0.0%
    DRAM Single-Package, GB/sec  109                         32.900    9.111                                           0.0%
Vectorization: 61.8% of Packed FP Operations
    Instruction Mix
        SP FLOPs: 27.5% of uOps
            Packed: 61.8% from SP FP
                256-bit: 1.8% from SP FP
            Scalar: 38.2% from SP FP
        Non-FP: 72.5% of uOps
    FP Arith/Mem Rd Instr. Ratio: 1.373
Collection and Platform Info
    Application Command Line: ./net "train: all"
    Computer Name: node17
    Collection start time: 20:08:17 04/02/2025 UTC
    Collector Type: Driverless Perf per-process sampling
    CPU
        Name: Intel(R) Xeon(R) Processor code named Skylake
        Frequency: 2.394 GHz
        Logical CPU Count: 8
    GPU
        Name: Some GPU

If you want to skip descriptions of detected performance issues in the report,
enter: vtune -report summary -report-knob show-issues=false -r <my_result_dir>.
vtune: Executing actions 100 % done
"""
SUMMARY_CSV = """\
Hierarchy Level,Metric Name,Metric Value
0,Elapsed Time,24.750000
1,CPU Time,41.125000
2,Effective Time,38.500000
2,Spin Time,2.125000
1,Instructions Retired,98765400000
1,CPI Rate,0.999000
1,Total Thread Count,9
0,Effective CPU Utilization,20.8
1,Average Effective CPU Utilization,1.662 out of 8
0,Memory Bound,28.7
1,DRAM Bound,N/A with HT on
1,Bandwidth Utilization,
1,Bandwidth Domain,Platform Maximum,Observed Maximum,Average,% of Elapsed Time with High BW Utilization(%)
1,"DRAM, GB/sec",118.000000,47.900000,8.352945,0.0
0,Vectorization,61.8
0,Top Hotspots,
1,Function,Module,CPU Time,% of CPU Time(%)
1,conv_forward,libnet.so,30.250000,73.6
1,decode_jpeg,libjpeg.so.62,2.500000,6.1
0,Collection and Platform Info,
1,Computer Name,node17
1,CPU,
2,Logical CPU Count,8
2,Frequency,2.394 GHz
"""
MEMORY = """\
Elapsed Time: 120.364s
    Allocation Size: 2.6 GB
    Deallocation Size: 2.5 GB
    Allocations: 1,083
    Total Thread Count: 12
    Paused Time: 0s

Top Memory-Consuming Functions
Function      Memory Consumption  Allocation/Deallocation Delta  Allocations  Module
------------  ------------------  -----------------------------  -----------  ------
malloc_check              1.6 GB                          0.0 B           40  net
fread                    45.1 KB                         24.0 B        1,040  net
[Others]                  1.7 KB                          1.1 KB           3  N/A
Collection and Platform Info
    Application Command Line: ./net
    CPU
        Logical CPU Count: 12
"""
UARCH = """\
Elapsed Time: 19.836s
    IPC: 1.193
    DP GFLOPS: 0.085
    Average CPU Frequency: 3.380 GHz
Logical Core Utilization: 0.7% (0.868 out of 128)
    Physical Core Utilization: 1.3% (0.861 out of 64)
Microarchitecture Usage: 24.6% of Pipeline Slots
    Retiring: 24.6% of Pipeline Slots
    Front-End Bound: 9.8% of Pipeline Slots
    Bad Speculation: 15.8% of Pipeline Slots
    Back-End Bound: 49.8% of Pipeline Slots
        Memory Bound: 29.6% of Pipeline Slots
            L1 Bound: 5.5% of Clockticks
            DRAM Bound: 21.1% of Clockticks
        Core Bound: 20.3% of Pipeline Slots
Collection and Platform Info
    CPU
        Logical CPU Count: 128
"""
APS = """\
Intel(R) VTune(TM) Profiler 2025.0.1 collection completed successfully. Use the "aps --report result" command.
| Summary information
|--------------------------------------------------------------------
  Application                   : net
  Report creation date          : 2025-04-02 17:06:52
  Number of ranks               : 16
  Ranks per node                : 8
  OpenMP threads number per Rank: 4
  HW Platform                   : Intel(R) Xeon(R) Processor code named Icelake
  Frequency                     : 3.00 GHz
  Logical core count per node   : 64
  Collector type                : Event-based sampling driver,Driverless Perf system-wide counting
  Used statistics               : aps_result
|
| Your application is MPI bound. Explore the MPI Imbalance: it may be high.
|
  Elapsed Time:                             171.25 s
  SP GFLOPS:                                  0.01
  DP GFLOPS:                                  6.63
  Average CPU Frequency:                      3.12 GHz
  IPC Rate:                                   1.39
  MPI Time:                                  65.98 s            38.53% of Elapsed Time
| Some of the individual values contributing to this average metric are
| statistical outliers. Please use --metrics="MPI Time" reports for details.
    MPI Imbalance:                           32.38 s            18.91% of Elapsed Time
    Top 5 MPI functions (avg time):
        MPI_Waitall:                         58.48 s            34.15% of Elapsed Time
        MPI_Isend:                            4.77 s             2.78% of Elapsed Time
  OpenMP Imbalance:                          48.08 s            28.08% of Elapsed Time
  Serial Time:                               12.50 s             7.30% of Elapsed Time
  Physical Core Utilization:                 63.90%
  Average Physical Core Utilization:         20.45 out of 32 Physical Cores
  Memory Stalls:                             37.00% of Pipeline Slots
    Cache Stalls:                            16.00% of Cycles
    DRAM Stalls:                             10.10% of Cycles
    DRAM Bandwidth
       Peak:                                 33.50 GB/s
       Average:                              21.25 GB/s
       Bound:                                12.00%
  Vectorization:                             37.30%
     Instruction Mix:
       SP FLOPs:                              0.00% of uOps
       DP FLOPs:                             14.50% of uOps
          Packed:                            37.40% from DP FP
             128-bit:                        37.40%
          Scalar:                            62.60% from DP FP
       Non-FP:                               85.50% of uOps
 Disk I/O Bound:                              0.94 s             0.55% of Elapsed Time
      Disk read:                             153.1 KB
 Memory Footprint:
 Resident:
       Per node:
           Peak resident set size    :         1574.00 MB (node n1)
           Average resident set size :         1573.00 MB
       Per rank:
           Peak resident set size    :          156.00 MB (rank 3)
           Average resident set size :           98.38 MB
 Virtual:
       Per node:
           Peak memory consumption    :        55277.00 MB (node n1)
       Per rank:
           Peak memory consumption    :         3502.00 MB (rank 7)

Graphical representation of this data is available in the HTML report: /scratch/me/aps_report_20250402_171940.html
"""
APS_OLD = """\
| Summary information
|--------------------------------------------------------------------
  HW Platform                   : Intel(R) Processor code named Knights Landing
  Logical core count per node   : 256
  Collector type                : Driverless Perf system-wide counting
  Used statistics               : aps_results
|
| Your application might underutilize the available logical CPU cores
|
  Elapsed time:                             784.33 sec
  CPI Rate:                                   2.07
  CPU Utilization:                            6.50%
  Average CPU Utilization:                   16.60 out of 256.00 logical CPUs
  Back-End Stalls:                           38.90% of pipeline slots
    L2 Hit Bound:                             1.30% of cycles
    DRAM Bandwidth:                           3.73 GB/s
  SIMD Instr. per Cycle:                      0.01
    FP Instruction Mix
      % of Packed SIMD Instr.:               78.50%
"""
APS_RANKS = """\
| MPI Time per Rank
|---------------------------------------------------------
| Rank    LifeTime(sec)     MPITime(sec)       MPITime(%)
|---------------------------------------------------------
  0001           482.96           396.39          82.0756
  0000           477.18           387.17          81.1378
|=========================================================
| TOTAL          960.14           783.57          81.6095
| AVG            480.07           391.78          81.6095
"""
APS_METRICS = """\
| Metric Table
|--------------------------------------------------------------------------------------------------------------
Metric Name                                Node Name           Rank    Device Type      Device Name   Metric Value   Outlier Type
MPI Time, s                                  node001              1            N/A              N/A        166.471           None
MPI Time, s                                  node001              0            N/A              N/A          159.1           None
MPI Time, % of Elapsed Time                  node001              1            N/A              N/A        19.2067           None
Memory Stalls, % of Pipeline Slots           node001            N/A            N/A              N/A           42.5           None
GPU Accumulated Time Per Device, s           node001            N/A            GPU    GPU 0 Stack 0        574.952           None
"""
APS_METRICS_CSV = """\
Metric Name;Node Name;Rank;Device Type;Device Name;Metric Value;Outlier Type
MPI Time, s;node001;1;N/A;N/A;166.471;None
Average CPU Frequency, GHz;node001;N/A;N/A;N/A;2.75;None
"""
APS_HTML = """<!DOCTYPE html><html lang="en"><head><title>APS report</title><script>
var json={"INFO":{"APPLICATION_NAME":"net","NUM_RANKS":"32","RANKS_PER_NODE":"16","CREATION_DATETIME":"2021-01-21 15:25:30"},
"VECTORIZATION":null,"CPU_USAGE":{"CPU_USAGE_PERC":"6.50%"},"AVERAGE_CPU_USE":{"AVERAGE_CPU_USE_VAL":"16.60"},
"CPU_OUT_OF":{"CPU_OUT_OF_VAL":"256.00"},
"WALLCLOCK":{"WALLCLOCK_SEVERITY":"severityUnknown","WALLCLOCK_VAL":"250.03s","WALLCLOCK_PERC":"0.00%","WALLCLOCK_DESCR":"Total."},
"MPI_TIME":{"MPI_TIME_VAL":"23.25s","MPI_TIME_PERC":"9.30%"},"MPI_IMBALANCE":{"MPI_IMBALANCE_VAL":"14.80s","MPI_IMBALANCE_PERC":"5.92%"},
"RSS":{"PEAK_RSS_RANK":"Rank: 14","PEAK_RSS_VAL":"92.39 MB","MEAN_RSS_VAL":"91.48 MB"},
"TOP_5":{"Waitany":"5.87","Send":"3.08"},"IO":{"IOWAIT_USEC_VAL":"2.87s","IOWAIT_USEC_PERC":"1.15%"}};
</script></head><body></body></html>
"""
