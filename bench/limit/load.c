/* limit load: LIVE_MB; phases with other sizes; 2 threads? */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
static unsigned long long s=88172645463325252ULL; static unsigned rnd(void){ s^=s<<13; s^=s>>7; s^=s<<17; return s>>16; }
int main(int c,char**v){
  size_t target=(size_t)atol(v[1])<<20; int phases=c>2?atoi(v[2]):4; size_t most=c>3?atol(v[3]):2000; size_t cap=target/16; char**b=calloc(cap,sizeof*b); size_t*z=calloc(cap,sizeof*z); size_t n=0,live=0; 
  struct timespec t0,t1; clock_gettime(CLOCK_MONOTONIC,&t0); unsigned long ops=0;
  target-=cap*0; 
  for(int ph=0;ph<phases;ph++){
    /* free a random half */
    for(size_t i=0;i<n;){ if(rnd()&1){ live-=z[i]; free(b[i]); n--; b[i]=b[n]; z[i]=z[n]; ops++; } else i++; }
    /* fill up with this phase's sizes */
    size_t lo=16, hi=most>>(ph%3); 
    while(1){ size_t k=lo+rnd()%(hi-lo); if(live+k>target) break; b[n]=malloc(k); if(!b[n]){ puts("null"); return 3; } memset(b[n],1,k); z[n]=k; live+=k; n++; ops++; }
    /* churn */
    for(size_t i=0;i<2000000;i++){ size_t j=rnd()%n; live-=z[j]; free(b[j]); size_t k=lo+rnd()%(hi-lo); if(live+k>target) k=16; b[j]=malloc(k); memset(b[j],1,k); z[j]=k; live+=k; ops++; }
  }
  clock_gettime(CLOCK_MONOTONIC,&t1); printf("%f s %lu ops live %zu n %zu\n",(t1.tv_sec-t0.tv_sec)+(t1.tv_nsec-t0.tv_nsec)/1e9,ops,live>>20,n); return 0; }
