#include <stdlib.h>
#include <string.h>
#include <stdio.h>
#include <unistd.h>
#include <pthread.h>
static int mode; 
static void grow(void){ size_t n=0; char*volatile b=NULL;
  switch(mode){
   case 0: for(;;){ char*p=malloc(64); memset(p,1,64); }
   case 1: for(;;){ char*p=malloc(3000); memset(p,1,3000); }
   case 2: for(;;){ char*p=malloc(1<<20); memset(p,1,1<<20); }
   case 3: for(n=1<<16;;n*=2){ b=realloc(b,n); memset(b+n/2,1,n/2); }
   case 4: for(n=1<<20;;n+=1<<20){ b=realloc(b,n); memset(b+n-(1<<20),1,1<<20); }
   case 5: for(;;){ char*p=calloc(1,100<<10); memset(p,1,100<<10); usleep(100);} 
   case 6: { volatile char*p=malloc((size_t)2<<30); for(n=0;;n+=4096) p[n]=1; }
   case 7: for(;;){ for(int i=0;i<1000;i++){ char*p=malloc(500); memset(p,1,500);} usleep(500);} 
   default: for(;;){ char*p=malloc(20000); memset(p,1,20000); }
  } }
static void*th(void*x){ grow(); return x; }
int main(int c,char**v){ mode=atoi(v[1]); if(mode==8){ pthread_t t[4]; for(int i=0;i<4;i++) pthread_create(t+i,0,th,0); } grow(); }
